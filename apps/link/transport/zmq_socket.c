/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ: what all sockets need: options, keys, being watched, telling events. */
#include <sys/epoll.h>

#include "apps/link/transport/zmq_private.h"
#include "base/base.h"

#define HANDSHAKE_MS 2000
#define CURVE_BYTES 64 /* at most: what encryption adds to a part */

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
        rc = zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, z->secret_key, LNK_KEY_BYTES);
        if (server_key) {
            rc |= zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, z->public_key, LNK_KEY_BYTES) |
                  zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server_key, LNK_KEY_BYTES);
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
