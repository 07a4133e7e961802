/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ: what all sockets need: options, keys, being watched, telling events, who may connect. */
#include <sys/epoll.h>

#include "apps/link/transport/zmq_private.h"
#include "base/base.h"

#define HANDSHAKE_MS 2000
#define CURVE_BYTES 64 /* at most: what encryption adds to a part */
#define ZAP_ENDPOINT "inproc://zeromq.zap.01"
#define ZAP_FRAMES 7u /* version, id, domain, address, routing id, mechanism, key */
#define USER "User-Id"

int zl_set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value));
}

int zl_watch_fd(struct zl *z, int fd, bool *news)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = news};

    *news = z->news = true;
    return epoll_ctl(z->base.fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int zl_watch(struct zl *z, void *socket, bool *news)
{
    size_t size = sizeof(int);
    int fd;

    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) < 0 ? -zmq_errno() : zl_watch_fd(z, fd, news);
}

void zl_close_socket(struct zl *z, void **socket)
{
    size_t size = sizeof(int);
    int fd;

    if (*socket) {
        if (zmq_getsockopt(*socket, ZMQ_FD, &fd, &size) == 0) {
            epoll_ctl(z->base.fd, EPOLL_CTL_DEL, fd, NULL);
        }
        zmq_close(*socket);
        *socket = NULL;
    }
}

int zl_secure(struct zl *z, void *socket, const uint8_t *server_key)
{
    int64_t part_max = server_key ? 1024 : (int64_t)z->part_bytes_max + CURVE_BYTES;
    int rc = zl_set_int(socket, ZMQ_LINGER, 0) | zl_set_int(socket, ZMQ_IPV6, 1) |
             zl_set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) |
             zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &part_max, sizeof(part_max)) |
             zmq_setsockopt(socket, ZMQ_ZAP_DOMAIN, ZL_DOMAIN, strlen(ZL_DOMAIN));

    if (rc == 0 && !z->trusted_wire) {
        rc = zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, z->keys.secret_key, BRD_KEY_BYTES);
        if (server_key) {
            rc |= zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, z->keys.public_key, BRD_KEY_BYTES) |
                  zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, BRD_KEY_BYTES);
        } else {
            rc |= zl_set_int(socket, ZMQ_CURVE_SERVER, 1);
        }
    }
    return rc;
}

void *zl_monitor(struct zl *z, void *socket, int events, bool *news)
{
    void *monitor = zmq_socket(z->context, ZMQ_PAIR);
    char name[48];

    snprintf(name, sizeof(name), "inproc://monitor-%u", z->monitor_count++);
    if (monitor && zl_set_int(monitor, ZMQ_LINGER, 0) == 0 &&
        zmq_socket_monitor(socket, name, events) == 0 && zmq_connect(monitor, name) == 0 &&
        zl_watch(z, monitor, news) == 0) {
        return monitor;
    }
    zl_close_socket(z, &monitor);
    return NULL;
}

uint16_t zl_next_event(void *monitor, uint32_t *ret_value)
{
    uint8_t what[6], address[256]; /* event and value; then the address, which is not needed */
    uint16_t event;

    if (zmq_recv(monitor, what, sizeof(what), ZMQ_DONTWAIT) != (int)sizeof(what)) {
        return 0;
    }
    zmq_recv(monitor, address, sizeof(address), ZMQ_DONTWAIT);
    memcpy(&event, what, sizeof(event));
    if (ret_value) {
        memcpy(ret_value, what + sizeof(event), sizeof(*ret_value));
    }
    return event;
}

/* ---- who may connect, and whose message it is ---- */

int zl_auth_open(struct zl *z)
{
    z->auth = zmq_socket(z->context, ZMQ_REP);
    if (!z->auth || zl_set_int(z->auth, ZMQ_LINGER, 0) < 0 || zmq_bind(z->auth, ZAP_ENDPOINT) < 0) {
        return -zmq_errno();
    }
    return zl_watch(z, z->auth, &z->auth_news);
}

static size_t find_key(const struct zl *z, const void *key, size_t bytes)
{
    for (size_t i = 0; i < z->base.peer_count && bytes == BRD_KEY_BYTES; i++) {
        if (memcmp(z->peer[i].is.key, key, BRD_KEY_BYTES) == 0) {
            return i;
        }
    }
    return LNK_PEERS_MAX;
}

static void answer(struct zl *z, const void *id, size_t id_bytes, size_t peer)
{
    bool yes = z->trusted_wire || peer < LNK_PEERS_MAX;
    char user[16];
    int n = snprintf(user, sizeof(user), "%zu", peer);

    zmq_send(z->auth, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(z->auth, id, id_bytes, ZMQ_SNDMORE);
    zmq_send(z->auth, yes ? "200" : "400", 3, ZMQ_SNDMORE);
    zmq_send(z->auth, yes ? "yes" : "no", yes ? 3 : 2, ZMQ_SNDMORE);
    zmq_send(z->auth, user, yes ? (size_t)n : 0, ZMQ_SNDMORE);
    zmq_send(z->auth, "", 0, 0);
}

void zl_auth_dispatch(struct zl *z)
{
    for (;;) {
        uint8_t frame[ZAP_FRAMES][64];
        size_t bytes[ZAP_FRAMES] = {0}, count = 0, peer = LNK_PEERS_MAX;
        int more = 1;

        for (; more; count++) {
            uint8_t unused[64];
            size_t size = sizeof(more);
            int n = zmq_recv(z->auth, count < ZAP_FRAMES ? frame[count] : unused, 64, ZMQ_DONTWAIT);

            if (n < 0) {
                return;
            }
            if (count < ZAP_FRAMES) {
                bytes[count] = (size_t)n;
            }
            zmq_getsockopt(z->auth, ZMQ_RCVMORE, &more, &size);
        }
        if (count == ZAP_FRAMES && bytes[5] == 5 && memcmp(frame[5], "CURVE", 5) == 0) {
            peer = find_key(z, frame[6], bytes[6]);
        }
        answer(z, frame[1], base_min(bytes[1], sizeof(frame[1])), peer);
    }
}

size_t zl_who(struct zl *z, zmq_msg_t *identity)
{
    const uint8_t *claimed = zmq_msg_data(identity);
    const char *user;
    size_t peer;
    char *end;

    if (z->trusted_wire) { /* a letter for the lane, and the key */
        return zmq_msg_size(identity) == BRD_KEY_BYTES + 1 ? find_key(z, claimed + 1, BRD_KEY_BYTES)
                                                           : LNK_PEERS_MAX;
    }
    user = zmq_msg_gets(identity, USER);
    if (!user || !*user) {
        return LNK_PEERS_MAX;
    }
    peer = strtoul(user, &end, 10);
    return *end == 0 && peer < z->base.peer_count ? peer : LNK_PEERS_MAX;
}
