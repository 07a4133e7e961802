/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ: opening, receiving, closing. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "apps/link/transport/zmq_private.h"
#include "base/base.h"

#define PART_BYTES_MAX (256ull << 20)
#define QUEUE_BYTES_MAX (64ull << 20)
#define SILENT_MS 550      /* without an answer to a heartbeat */
#define RECEIVED_MAX 16    /* messages of a connection that wait here; more wait in the network */
#define MESSAGES_A_TURN 64 /* then the event loop gets its turn */
#define EVENTS_A_TURN 32   /* what is left is told again */
#define REFUSALS                                                                                   \
    (ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |                  \
     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)

/* Receives one message. Return: false: there was none. */
static bool receive(struct zl *z)
{
    zmq_msg_t frame[2 + LNK_RANGES_MAX];
    struct lnk_bytes part[1 + LNK_RANGES_MAX];
    size_t count = 0, peer = LNK_PEERS_MAX;
    bool fits = true, more = true;

    while (more) {
        zmq_msg_t *f = &frame[count];

        zmq_msg_init(f);
        if (zmq_msg_recv(f, z->router, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(f);
            break; /* only before the first part: messages arrive whole */
        }
        more = zmq_msg_more(f);
        if (count == 0) {
            peer = zl_who(z, f);
        } else {
            part[count - 1] = (struct lnk_bytes){zmq_msg_data(f), zmq_msg_size(f)};
        }
        if (more && count + 1 == base_array_count(frame)) {
            fits = false;
            zmq_msg_close(f);
        } else {
            count++;
        }
    }
    if (count == 0) {
        return false;
    }
    if (!fits || count < 2 || peer == LNK_PEERS_MAX) {
        z->base.all.garbage++;
    } else {
        z->base.peer[peer].messages_in++;
        z->base.listener.message(z->base.listener.user, peer, part, count - 1);
    }
    for (size_t i = 0; i < count; i++) {
        zmq_msg_close(&frame[i]);
    }
    return true;
}

/* Notes what has news. Asking each socket costs more than all heartbeats. Return: nothing has. */
static bool is_quiet(struct zl *z)
{
    struct epoll_event told[EVENTS_A_TURN];
    int count = epoll_wait(z->base.fd, told, EVENTS_A_TURN, 0);

    for (int i = 0; i < count; i++) {
        *(bool *)told[i].data.ptr = true;
    }
    return count <= 0 && !z->news;
}

static bool take(bool *news)
{
    bool was = *news;

    *news = false;
    return was;
}

static void receive_some(struct zl *z)
{
    int left = MESSAGES_A_TURN;

    while (left > 0 && receive(z)) {
        left--;
    }
    z->router_news = left == 0;
    if (left == 0) {
        eventfd_write(z->wake, 1);
    }
}

static void zl_dispatch(struct lnk_transport *t)
{
    struct zl *z = (struct zl *)t;
    uint64_t now_ns = base_now_ns();
    eventfd_t unused;

    if (is_quiet(z)) {
        return;
    }
    if (take(&z->woken)) {
        eventfd_read(z->wake, &unused);
    }
    z->news = false;
    zl_release_all(z);
    if (take(&z->auth_news)) {
        zl_auth_dispatch(z);
    }
    while (z->refused_news) {
        z->refused_news = zl_next_event(z->router_monitor, NULL) != 0;
        z->base.all.denied += z->refused_news;
    }
    if (z->router_news) {
        receive_some(z);
    }
    for (size_t i = 0; i < t->peer_count; i++) {
        zl_peer_dispatch(z, i, now_ns);
    }
    zl_set_timer(z);
}

static void zl_close(struct lnk_transport *t)
{
    struct zl *z = (struct zl *)t;

    for (size_t i = 0; i < t->peer_count; i++) {
        zl_peer_hang_up(z, i);
    }
    if (z->router) {
        zmq_socket_monitor(z->router, NULL, 0);
    }
    zl_close_socket(z, &z->router_monitor);
    zl_close_socket(z, &z->router);
    zl_close_socket(z, &z->auth);
    while (z->context && zmq_ctx_term(z->context) < 0 && zmq_errno() == EINTR) {
    }
    zl_release_all(z);
    base_close_fd(&z->wake);
    base_close_fd(&z->timer);
    base_close_fd(&t->fd);
    pthread_mutex_destroy(&z->lock);
    explicit_bzero(&z->keys, sizeof(z->keys));
    free(z);
}

static int listen_at(struct zl *z, const char *address)
{
    char endpoint[BRD_ADDRESS_BYTES + 8];
    size_t size = sizeof(endpoint);
    int rc = 0;

    snprintf(endpoint, sizeof(endpoint), "tcp://%s", address);
    z->router = zmq_socket(z->context, ZMQ_ROUTER);
    if (!z->router) {
        return -zmq_errno();
    }
    rc |= zl_set_int(z->router, ZMQ_ROUTER_MANDATORY, 1);
    rc |= zl_set_int(z->router, ZMQ_ROUTER_HANDOVER, z->trusted_wire);
    rc |= zl_set_int(z->router, ZMQ_RCVHWM, RECEIVED_MAX);
    rc |= zl_secure(z, z->router, NULL);
    z->router_monitor = rc == 0 ? zl_monitor(z, z->router, REFUSALS, &z->refused_news) : NULL;
    if (!z->router_monitor || zl_watch(z, z->router, &z->router_news) < 0) {
        return -EIO;
    }
    if (zmq_bind(z->router, endpoint) < 0 ||
        zmq_getsockopt(z->router, ZMQ_LAST_ENDPOINT, endpoint, &size) < 0) {
        return -zmq_errno();
    }
    z->base.port = (uint16_t)strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    return 0;
}

static int check(const struct lnk_config *c, char ret_error[256])
{
    static const uint8_t none[BRD_KEY_BYTES];

    if (memcmp(c->keys.public_key, none, BRD_KEY_BYTES) == 0 ||
        memcmp(c->keys.secret_key, none, BRD_KEY_BYTES) == 0) {
        snprintf(ret_error, 256, "there are no keys, and nothing listens without");
        return -EINVAL;
    }
    for (size_t i = 0; i < c->peer_count; i++) {
        if (memcmp(c->peers[i].key, none, BRD_KEY_BYTES) == 0 ||
            memcmp(c->peers[i].key, c->keys.public_key, BRD_KEY_BYTES) == 0) {
            snprintf(ret_error, 256, "the board %.31s has %s key", c->peers[i].name,
                     memcmp(c->peers[i].key, none, BRD_KEY_BYTES) == 0 ? "no" : "this board's own");
            return -EINVAL;
        }
        for (size_t k = 0; k < i; k++) {
            if (memcmp(c->peers[i].key, c->peers[k].key, BRD_KEY_BYTES) == 0) {
                snprintf(ret_error, 256, "the boards %.31s and %.31s have the same key",
                         c->peers[k].name, c->peers[i].name);
                return -EINVAL;
            }
        }
    }
    return 0;
}

static int zl_open(const struct lnk_config *c, struct lnk_transport **ret, char ret_error[256])
{
    struct zl *z;
    int rc = check(c, ret_error);

    if (rc < 0) {
        return rc;
    }
    z = calloc(1, sizeof(*z));
    if (!z) {
        return -ENOMEM;
    }
    z->base.code = lnk_zmq_code;
    z->base.listener = c->listener;
    z->base.peer_count = c->peer_count;
    z->base.self = LNK_PEERS_MAX;
    z->base.fd = epoll_create1(EPOLL_CLOEXEC);
    z->wake = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK); /* the first dispatch dials */
    z->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    z->timer_ns = UINT64_MAX;
    z->trusted_wire = c->trusted_wire;
    z->part_bytes_max = c->part_bytes_max ? c->part_bytes_max : PART_BYTES_MAX;
    z->queue_bytes_max = c->queue_bytes_max ? c->queue_bytes_max : QUEUE_BYTES_MAX;
    z->silent_ms = (int)(c->silent_ms ? c->silent_ms : SILENT_MS);
    z->keys = c->keys;
    STAILQ_INIT(&z->let_go);
    pthread_mutex_init(&z->lock, NULL);
    for (size_t i = 0; i < c->peer_count; i++) {
        z->peer[i].is = c->peers[i];
    }
    z->context = zmq_ctx_new();
    rc = z->base.fd < 0 || z->wake < 0 || z->timer < 0 || !z->context ? -ENOMEM : 0;
    rc = rc ? rc : zl_watch_fd(z, z->wake, &z->woken);
    rc = rc ? rc : zl_watch_fd(z, z->timer, &z->timed);
    rc = rc ? rc : zl_auth_open(z);
    rc = rc ? rc : listen_at(z, c->listen);
    if (rc < 0) {
        snprintf(ret_error, 256, "cannot listen at %.128s: %s", c->listen, zmq_strerror(-rc));
        zl_close(&z->base);
        return rc;
    }
    *ret = &z->base;
    return 0;
}

static const struct lnk_code code = {"zmq",   zl_open, zl_close, zl_dispatch,
                                     zl_send, zl_wire, zl_redial};
const struct lnk_code *const lnk_zmq_code = &code;
