/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/polling.h"

#include "base.h"
#include "daemon/frames/frame_ring.h"
#include "daemon/frames/handlers.h"

#define READ_ROUNDS 8 /* of a connection in one go */

static bool wanted(const struct dmn_conn *c)
{
    return dmn_conn_takes(c) && ipc_intake_room(&c->intake);
}

/* Handles what has come, and reads on. Return: false: the connection has ended. */
static bool read_rounds(struct dmn_conn *c)
{
    bool full = false;

    dmn_handle_messages(c);
    for (int round = 0; round < READ_ROUNDS && wanted(c) && !c->cut; round++) {
        ssize_t n;

        full = false;
        n = ipc_intake_receive(&c->intake, c->peer.fd, &full);
        if (n <= 0) {
            return n == 0;
        }
        dmn_handle_messages(c);
        if (!full || dmn_loop_over(c->peer.frames->turns)) {
            break;
        }
    }
    if (c->cut || (full && wanted(c))) {
        dmn_loop_due(&c->task);
    }
    return true;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct dmn_conn *c = poll->data;

    c->broken |= status < 0;
    c->hung_up |= events & UV_DISCONNECT;
    if (status < 0 || events & (UV_READABLE | UV_DISCONNECT)) {
        dmn_loop_due(&c->task);
    }
    if (events & UV_WRITABLE) {
        dmn_peer_mark(&c->peer);
    }
}

static void update_poll(struct dmn_conn *c)
{
    int events = 0;

    if (c->peer.closed) {
        return;
    }
    if (!c->task.due) { /* else it is known that it has something */
        events = UV_DISCONNECT | (wanted(c) ? UV_READABLE : 0);
    }
    if (ipc_outgoing_waiting(&c->peer.out) > 0) {
        events |= UV_WRITABLE;
    }
    if (events == c->events) {
        return;
    }
    c->events = events;
    if (events) {
        uv_poll_start(&c->poll, events, on_poll);
    } else {
        uv_poll_stop(&c->poll);
    }
}

/* Answers what is DONE, and writes. Return: messages in the buffer that had no room may have it
 * now. */
static bool answer(struct dmn_conn *c)
{
    bool backlogged = dmn_peer_backlogged(&c->peer), more = false;

    for (size_t i = c->stream_count; i-- > 0;) {
        struct dmn_stream *s = c->streams[i];

        more |= dmn_stream_answer(s);
        if (dmn_stream_finished(s)) {
            dmn_conn_end_stream(c, s); /* the stream that takes its place was already seen */
        }
    }
    if (!ipc_outgoing_flush(&c->peer.out, c->peer.fd) ||
        (c->peer.ending && !ipc_outgoing_waiting(&c->peer.out))) {
        dmn_conn_close(c);
        return false;
    }
    dmn_peer_settled(&c->peer);
    if (backlogged && !dmn_peer_backlogged(&c->peer)) { /* answers may still be in a ring */
        dmn_peer_mark(&c->peer);
        more = true;
    }
    return more && ipc_intake_waits(&c->intake);
}

void dmn_polling_settle(struct dmn_conn *c)
{
    if (c->peer.closed) {
        return;
    }
    if (answer(c)) {
        dmn_loop_due(&c->task);
    }
    update_poll(c);
}

/* A piece of the connection's work, with its answers. */
static void run(struct dmn_loop_task *task)
{
    struct dmn_conn *c = base_container_of(task, struct dmn_conn, task);

    if (c->broken || (c->hung_up && !wanted(c)) || !read_rounds(c)) {
        dmn_conn_close(c);
    }
    dmn_polling_settle(c);
}

void dmn_polling_take_in(struct dmn_conn *c)
{
    if (!read_rounds(c)) {
        dmn_conn_close(c);
    }
    while (!c->peer.closed && answer(c)) {
        dmn_handle_messages(c);
    }
    update_poll(c);
}

int dmn_polling_start(struct dmn_frames *f, int fd, struct dmn_account *account, pid_t pid)
{
    struct dmn_conn *c;
    int error = dmn_conn_new(f, fd, account, pid, &c);

    if (error < 0) {
        return error;
    }
    c->task.run = run;
    update_poll(c);
    return 0;
}
