/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ: dialing a peer, noticing that it is there, and that it is gone. */
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "apps/link/transport/zmq_private.h"
#include "apps/link/wire/measure.h"
#include "base/base.h"

#define HEARTBEAT_MS 350
#define CONNECT_MS 1000
#define RETRY_MS 100 /* doubled up to RETRY_MAX_MS by libzmq */
#define RETRY_MAX_MS 1000
#define REST_NS (200 * BASE_NS_PER_MS)
#define REFUSED_REST_NS (1 * BASE_NS_PER_S)
/* libzmq gives a connection up for good after some refusals, without an event in every version. */
#define DIAL_NS (5 * BASE_NS_PER_S)
/* Encrypting one large part may take a look or two. */
#define LOOK_NS (1 * BASE_NS_PER_S)
#define IDLE_LOOKS 3u
#define EVENTS                                                                                     \
    (ZMQ_EVENT_CONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |                \
     ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)

static void close_dialer(struct zl *z, struct zl_dialer *d)
{
    if (d->socket) {
        zmq_socket_monitor(d->socket, NULL, 0);
    }
    zl_close_socket(z, &d->monitor);
    zl_close_socket(z, &d->socket);
    d->fd = -1;
}

void zl_peer_hang_up(struct zl *z, size_t peer)
{
    for (int lane = 0; lane < LNK_LANES; lane++) {
        close_dialer(z, &z->peer[peer].lane[lane]);
    }
}

static int dial(struct zl *z, struct zl_peer *p, enum lnk_lane lane)
{
    struct zl_dialer *d = &p->lane[lane];
    uint8_t id[BRD_KEY_BYTES + 1] = {lane == LNK_URGENT ? 'u' : 'b'};
    char endpoint[BRD_ADDRESS_BYTES + 8];
    int rc = 0;

    d->fd = -1;
    snprintf(endpoint, sizeof(endpoint), "tcp://%s", p->is.address);
    memcpy(id + 1, z->keys.public_key, BRD_KEY_BYTES);
    d->socket = zmq_socket(z->context, ZMQ_DEALER);
    if (!d->socket) {
        return -zmq_errno();
    }
    rc |= zl_set_int(d->socket, ZMQ_SNDHWM, 0); /* zl_send() counts bytes */
    rc |= zl_set_int(d->socket, ZMQ_RCVHWM, 1);
    rc |= zl_set_int(d->socket, ZMQ_IMMEDIATE, 1);
    rc |= zl_set_int(d->socket, ZMQ_CONNECT_TIMEOUT, CONNECT_MS);
    rc |= zl_set_int(d->socket, ZMQ_RECONNECT_IVL, RETRY_MS);
    rc |= zl_set_int(d->socket, ZMQ_RECONNECT_IVL_MAX, RETRY_MAX_MS);
    if (lane == LNK_URGENT) {
        rc |= zl_set_int(d->socket, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS);
        rc |= zl_set_int(d->socket, ZMQ_HEARTBEAT_TIMEOUT, z->silent_ms);
        rc |= zl_set_int(d->socket, ZMQ_HEARTBEAT_TTL, z->silent_ms);
    }
    if (z->trusted_wire) {
        rc |= zmq_setsockopt(d->socket, ZMQ_ROUTING_ID, id, sizeof(id));
    }
    rc |= zl_secure(z, d->socket, p->is.key);
    d->monitor = rc == 0 ? zl_monitor(z, d->socket, EVENTS, &d->monitor_news) : NULL;
    if (!d->monitor || zl_watch(z, d->socket, &d->socket_news) < 0 ||
        zmq_connect(d->socket, endpoint) < 0) {
        close_dialer(z, d);
        return -EIO;
    }
    return 0;
}

/* Hangs up, and dials again later. */
static void begin_again(struct zl *z, size_t peer, uint64_t now_ns, uint64_t rest_ns,
                        const char *why)
{
    struct zl_peer *p = &z->peer[peer];
    bool was_up = p->state == ZL_UP;

    zl_peer_hang_up(z, peer);
    p->state = ZL_RESTING;
    p->until_ns = now_ns + rest_ns;
    p->wants_room = false;
    p->hang_up = NULL;
    if (was_up) {
        z->base.peer[peer].up = false;
        z->base.peer[peer].downs++;
        z->base.listener.down(z->base.listener.user, peer, why);
    }
}

static void shaken_hands(struct zl *z, size_t peer, enum lnk_lane lane, uint64_t now_ns)
{
    struct zl_peer *p = &z->peer[peer];

    if (lane == LNK_URGENT && p->state == ZL_URGENT_DIALS) {
        p->state = ZL_BULK_DIALS;
        p->until_ns = now_ns + DIAL_NS;
        if (dial(z, p, LNK_BULK) < 0) {
            begin_again(z, peer, now_ns, REFUSED_REST_NS, "");
        }
    } else if (lane == LNK_BULK && p->state == ZL_BULK_DIALS) {
        p->state = ZL_UP;
        z->base.peer[peer].up = true;
        z->base.peer[peer].ups++;
        z->base.listener.up(z->base.listener.user, peer);
    }
}

/* Nobody may send to us this way. */
static void drop_what_came(struct zl *z, void *socket)
{
    char unused[1];

    while (zmq_recv(socket, unused, 0, ZMQ_DONTWAIT) >= 0) {
        z->base.all.garbage++;
    }
}

static void monitor_dispatch(struct zl *z, size_t peer, enum lnk_lane lane, uint64_t now_ns)
{
    struct zl_dialer *d = &z->peer[peer].lane[lane];
    uint16_t event;
    uint32_t value;

    d->monitor_news = false;
    while (d->monitor && (event = zl_next_event(d->monitor, &value)) != 0) {
        if (event == ZMQ_EVENT_CONNECTED) {
            d->fd = (int)value;
        } else if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) {
            shaken_hands(z, peer, lane, now_ns);
        } else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
                   event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) {
            begin_again(z, peer, now_ns, REFUSED_REST_NS, "it refuses the key");
        } else if (z->peer[peer].state > ZL_URGENT_DIALS) {
            begin_again(z, peer, now_ns, REST_NS, "the connection ended or fell silent");
        }
    }
}

static void lane_dispatch(struct zl *z, size_t peer, enum lnk_lane lane, uint64_t now_ns)
{
    struct zl_dialer *d = &z->peer[peer].lane[lane];

    if (d->monitor_news) {
        monitor_dispatch(z, peer, lane, now_ns);
    }
    if (d->socket_news && d->socket) {
        d->socket_news = false;
        drop_what_came(z, d->socket);
    }
}

void zl_queued(struct zl *z, struct zl_dialer *d)
{
    if (d->queued++ == 0) {
        d->look_ns = base_now_ns() + LOOK_NS;
        d->idle = 0;
        zl_set_timer(z);
    }
}

void zl_redial(struct lnk_transport *t, size_t peer, const char *why)
{
    struct zl *z = (struct zl *)t;

    z->peer[peer].hang_up = why;
    z->news = true;
}

/* Return: since the last look the kernel has sent nothing, and it has nothing to send. */
static bool is_idle(struct zl_dialer *d)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);
    uint64_t before = d->acked;
    int unsent;

    if (getsockopt(d->fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) ||
        ioctl(d->fd, SIOCOUTQ, &unsent) < 0) {
        return false;
    }
    d->acked = info.tcpi_bytes_acked;
    return unsent == 0 && d->acked == before;
}

/* Notices a bulk lane that libzmq does not write to any more. */
static void look(struct zl *z, size_t peer, uint64_t now_ns)
{
    struct zl_dialer *d = &z->peer[peer].lane[LNK_BULK];

    if (d->queued > 0 && now_ns >= d->look_ns) {
        d->look_ns = now_ns + LOOK_NS;
        d->idle = is_idle(d) ? d->idle + 1 : 0;
        if (d->idle >= IDLE_LOOKS) {
            z->peer[peer].hang_up = "what is sent to it stays here";
        }
    }
}

static void hang_up_if_due(struct zl *z, size_t peer, uint64_t now_ns)
{
    struct zl_peer *p = &z->peer[peer];

    if (p->state == ZL_UP) {
        look(z, peer, now_ns);
    }
    if (p->state == ZL_UP && p->hang_up) {
        begin_again(z, peer, now_ns, REST_NS, p->hang_up);
    }
    p->hang_up = NULL;
}

void zl_peer_dispatch(struct zl *z, size_t peer, uint64_t now_ns)
{
    struct zl_peer *p = &z->peer[peer];
    struct lnk_peer_stats *stats = &z->base.peer[peer];

    lane_dispatch(z, peer, LNK_URGENT, now_ns);
    lane_dispatch(z, peer, LNK_BULK, now_ns);
    hang_up_if_due(z, peer, now_ns);
    if (p->state != ZL_UP && now_ns >= p->until_ns) {
        if (p->state != ZL_RESTING) {
            begin_again(z, peer, now_ns, 0, "");
        }
        if (dial(z, p, LNK_URGENT) == 0) {
            p->state = ZL_URGENT_DIALS;
            p->until_ns = now_ns + DIAL_NS;
        } else {
            p->until_ns = now_ns + REFUSED_REST_NS;
        }
    }
    if (p->state == ZL_UP && p->wants_room && stats->queued_bytes <= z->queue_bytes_max / 2) {
        p->wants_room = false;
        z->base.listener.room(z->base.listener.user, peer);
    }
}

int zl_wire(const struct lnk_transport *t, size_t peer, struct lnk_wire_use *ret)
{
    const struct zl *z = (const struct zl *)t;
    struct tcp_info info = {0};
    socklen_t size = sizeof(info);

    if (getsockopt(z->peer[peer].lane[LNK_BULK].fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 ||
        size < offsetof(struct tcp_info, tcpi_sndbuf_limited)) {
        return -ENOTSUP;
    }
    ret->busy_ns = (info.tcpi_busy_time - base_min(info.tcpi_rwnd_limited, info.tcpi_busy_time)) *
                   BASE_NS_PER_US;
    ret->bytes = info.tcpi_bytes_acked;
    return 0;
}

void zl_set_timer(struct zl *z)
{
    uint64_t next = UINT64_MAX;
    struct itimerspec at = {0};

    for (size_t i = 0; i < z->base.peer_count; i++) {
        const struct zl_dialer *bulk = &z->peer[i].lane[LNK_BULK];

        if (z->peer[i].state != ZL_UP) {
            next = base_min(next, base_max(z->peer[i].until_ns, (uint64_t)1));
        } else if (bulk->queued > 0) {
            next = base_min(next, bulk->look_ns);
        }
    }
    if (next >= z->timer_ns && !z->timed) { /* once too early is cheaper than set each time */
        return;
    }
    z->timer_ns = next;
    z->timed = false;
    if (next != UINT64_MAX) {
        at.it_value.tv_sec = (time_t)(next / BASE_NS_PER_S);
        at.it_value.tv_nsec = (long)(next % BASE_NS_PER_S);
    }
    timerfd_settime(z->timer, TFD_TIMER_ABSTIME, &at, NULL); /* clears what has run out, too */
}
