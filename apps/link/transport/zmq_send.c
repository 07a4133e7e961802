/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ: sending, and giving ranges back. */
#include <stdatomic.h>
#include <sys/eventfd.h>

#include "apps/link/transport/zmq_private.h"
#include "base/base.h"

/* A message that libzmq holds. */
struct zl_out {
    struct zl *transport;
    STAILQ_ENTRY(zl_out) linked; /* in let_go */
    atomic_uint parts;           /* that libzmq holds; the last one pushes the message to let_go */
    size_t peer, bytes;
    enum lnk_lane lane;
    void (*released)(void *arg);
    void *arg;
    uint8_t copy[];
};

/* libzmq lets go of a part; on any thread. */
static void let_go(void *data, void *hint)
{
    struct zl_out *out = hint;
    struct zl *z = out->transport;

    if (atomic_fetch_sub(&out->parts, 1) > 1) {
        return;
    }
    pthread_mutex_lock(&z->lock);
    STAILQ_INSERT_TAIL(&z->let_go, out, linked);
    pthread_mutex_unlock(&z->lock);
    eventfd_write(z->wake, 1); /* fails only when it is readable anyway */
}

void zl_release_all(struct zl *z)
{
    struct zl_outs all = STAILQ_HEAD_INITIALIZER(all);
    struct zl_out *out;

    pthread_mutex_lock(&z->lock);
    STAILQ_CONCAT(&all, &z->let_go);
    pthread_mutex_unlock(&z->lock);
    while ((out = STAILQ_FIRST(&all))) {
        struct lnk_peer_stats *stats = &z->base.peer[out->peer];

        STAILQ_REMOVE_HEAD(&all, linked);
        if (out->bytes > 0) {
            stats->queued_messages--;
            stats->queued_bytes -= out->bytes;
            z->peer[out->peer].lane[out->lane].queued--;
        }
        if (out->released) {
            out->released(out->arg);
        }
        free(out);
    }
}

/* Makes all parts of a message or none. @copies: ranges go into out->copy. Return: 0, -ENOMEM. */
static int make_parts(struct zl_out *out, struct lnk_bytes first, const struct lnk_bytes *range,
                      size_t count, bool copies, zmq_msg_t *ret)
{
    uint8_t *copy = out->copy + first.bytes;

    for (size_t i = 0; i <= count; i++) {
        struct lnk_bytes b =
            i ? range[i - 1]
              : (struct lnk_bytes){memcpy(out->copy, first.data, first.bytes), first.bytes};

        if (i && copies && b.bytes > 0) {
            b.data = memcpy(copy, b.data, b.bytes);
            copy += b.bytes;
        }
        if (zmq_msg_init_data(&ret[i], (void *)(uintptr_t)b.data, b.bytes, let_go, out) < 0) {
            while (i > 0) { /* never the last of out->parts: it stays the caller's */
                zmq_msg_close(&ret[--i]);
            }
            return -ENOMEM;
        }
    }
    return 0;
}

/* Gives a message to libzmq. Return: false: nobody is connected; every part is let go. If the peer
 * is lost after the first part, libzmq drops the message. */
static bool send_parts(void *socket, zmq_msg_t *part, size_t count)
{
    bool sent = true;

    for (size_t i = 0; i <= count; i++) {
        if ((i > 0 && !sent) ||
            zmq_msg_send(&part[i], socket, ZMQ_DONTWAIT | (i < count ? ZMQ_SNDMORE : 0)) < 0) {
            sent = sent && i > 0;
            zmq_msg_close(&part[i]);
        }
    }
    return sent;
}

int zl_send(struct lnk_transport *t, size_t peer, enum lnk_lane lane, struct lnk_bytes first,
            const struct lnk_bytes *range, size_t count, void (*released)(void *), void *arg)
{
    struct zl *z = (struct zl *)t;
    struct zl_peer *p = &z->peer[peer];
    size_t bytes = first.bytes, copied = first.bytes;
    zmq_msg_t part[LNK_RANGES_MAX + 1];
    struct zl_out *out;

    if (p->state != ZL_UP) {
        return LNK_E_DOWN;
    }
    for (size_t i = 0; i < count; i++) {
        if (!base_add(bytes, range[i].bytes, &bytes)) {
            return -EINVAL;
        }
        copied += released ? 0 : range[i].bytes;
    }
    if (lnk_code_full(t, peer, count, bytes, z->queue_bytes_max)) {
        p->wants_room = true;
        return LNK_E_FULL;
    }
    out = malloc(sizeof(*out) + copied);
    if (!out) {
        return -ENOMEM;
    }
    *out = (struct zl_out){z, {NULL}, (unsigned)count + 1, peer, bytes, lane, released, arg};
    if (make_parts(out, first, range, count, !released, part) < 0) {
        free(out);
        return -ENOMEM;
    }
    p->lane[lane].socket_news = z->news = true; /* sending takes in what would be told */
    t->peer[peer].queued_messages++;
    t->peer[peer].queued_bytes += bytes;
    if (!send_parts(p->lane[lane].socket, part, count)) {
        /* Nobody is connected any more; the monitor will tell. All is let go already. */
        t->peer[peer].queued_messages--;
        t->peer[peer].queued_bytes -= bytes;
        out->bytes = 0;
        out->released = NULL;
        return LNK_E_DOWN;
    }
    zl_queued(z, &p->lane[lane]);
    return 0;
}
