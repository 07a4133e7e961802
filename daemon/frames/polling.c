/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/polling.h"

#include "base.h"
#include "daemon/frames/frame_ring.h"
#include "daemon/frames/handlers.h"

#define READ_ROUNDS 8 /* so that one busy client does not keep the others waiting */

static bool wanted(const struct dmn_conn *c)
{
    return dmn_conn_takes(c) && ipc_intake_room(&c->intake);
}

/* Return: false: the connection has ended. */
static bool read_rounds(struct dmn_conn *c)
{
    for (int round = 0; round < READ_ROUNDS && wanted(c); round++) {
        bool full = false;
        ssize_t n = ipc_intake_receive(&c->intake, c->peer.fd, &full);

        if (n <= 0) {
            return n == 0;
        }
        dmn_handle_messages(c);
        if (!full) {
            return true;
        }
    }
    return true;
}

void dmn_polling_read(struct dmn_conn *c)
{
    if (!read_rounds(c)) {
        dmn_conn_close(c);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct dmn_conn *c = poll->data;

    if (status < 0) {
        dmn_conn_close(c);
        return;
    }
    if (events & (UV_READABLE | UV_DISCONNECT)) {
        if (wanted(c)) {
            dmn_polling_read(c);
        } else if (events & UV_DISCONNECT) {
            dmn_conn_close(c);
        }
    }
    dmn_peer_mark(&c->peer);
}

static void update_poll(struct dmn_conn *c)
{
    int events = UV_DISCONNECT;

    if (wanted(c)) {
        events |= UV_READABLE;
    }
    if (ipc_outgoing_waiting(&c->peer.out) > 0) {
        events |= UV_WRITABLE;
    }
    if (events != c->events) {
        c->events = events;
        uv_poll_start(&c->poll, events, on_poll);
    }
}

bool dmn_polling_settle(struct dmn_conn *c)
{
    bool backlogged = dmn_peer_backlogged(&c->peer), answered = false;

    if (c->peer.closed) {
        return false;
    }
    dmn_handle_messages(c);
    for (size_t i = c->stream_count; i-- > 0;) {
        struct dmn_stream *s = c->streams[i];

        answered |= dmn_stream_answer(s);
        if (dmn_stream_finished(s)) {
            dmn_conn_end_stream(c, s); /* the stream that takes its place was already seen */
        }
    }
    if (!ipc_outgoing_flush(&c->peer.out, c->peer.fd) ||
        (c->peer.ending && !ipc_outgoing_waiting(&c->peer.out))) {
        dmn_conn_close(c);
        return false;
    }
    update_poll(c);
    /* there is room now for buffered messages, or for answers still in a ring */
    return answered || (backlogged && !dmn_peer_backlogged(&c->peer));
}

int dmn_polling_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid)
{
    struct dmn_conn *c;
    int error = dmn_conn_new(f, fd, account, pid, &c);

    if (error < 0) {
        return error;
    }
    update_poll(c);
    return 0;
}
