/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/front/connection.h"

#include <sys/epoll.h>

#include "ipc/server/receiving.h"

int front_conn_new(struct front_room *room, int fd, uid_t uid)
{
    struct front_conn *c = calloc(1, sizeof(*c));
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
    int error = -ENOMEM;

    if (!c || epoll_ctl(room->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        error = c ? -errno : error;
        free(c);
        return error;
    }
    c->peer.listener = &room->listener;
    c->room = room;
    c->uid = uid;
    c->events = event.events;
    ipc_conn_init(&c->peer.base, &room->server, fd);
    return 0;
}

size_t front_conns_of(const struct front_room *room, uid_t uid)
{
    const struct ipc_conn *c;
    size_t count = 0;

    LIST_FOREACH(c, &room->server.conns, linked) {
        count += front_conn_of(c)->uid == uid;
    }
    return count;
}

static size_t taken_of(const struct front_stream *s, const char *model)
{
    return strcmp(s->model, model) == 0 ? s->taken : 0;
}

/* Of the model, with the listener or about to be. */
static size_t frames_of(const struct ipc_conn *c, const char *model)
{
    const struct front_record *reading = c->reading;
    size_t frames = reading && strcmp(reading->stream->model, model) == 0;

    for (size_t i = 0; i < c->stream_count; i++) {
        frames += taken_of(front_stream_of(c->streams[i]), model);
    }
    return frames;
}

bool front_conn_share(const struct front_conn *c, const struct front_stream *s)
{
    const struct front_listener *l = &c->room->listener;
    const struct ipc_conn *other;
    const struct front_stream *o;
    size_t taken = 0;

    if (!l->share) {
        return true;
    }
    LIST_FOREACH(other, &c->room->server.conns, linked) {
        taken += front_conn_of(other)->uid == c->uid ? frames_of(other, s->model) : 0;
    }
    LIST_FOREACH(o, &c->room->orphans, linked) {
        taken += front_conn_of(&o->peer->base)->uid == c->uid ? taken_of(o, s->model) : 0;
    }
    if (taken < l->share(l->user, s->model)) {
        return true;
    }
    c->room->held = true;
    return false;
}

void front_conns_let_go(struct front_room *room)
{
    struct ipc_conn *c;

    if (!room->held) {
        return;
    }
    room->held = false;
    LIST_FOREACH(c, &room->server.conns, linked) {
        if (ipc_intake_waits(&c->intake)) {
            ipc_conn_mark(c);
        }
    }
}

/* Frees the struct, if it is closed and has no orphans. */
static void release(struct front_conn *c)
{
    if (c->peer.base.closed && c->orphans == 0) {
        free(c);
    }
}

void front_conn_close(struct front_conn *c)
{
    ipc_conn_leave(&c->peer.base);
    front_conns_let_go(c->room);
    ipc_conn_deinit(&c->peer.base);
    release(c);
}

void front_conn_orphan(struct ipc_stream *stream)
{
    struct front_stream *s = front_stream_of(stream);
    struct front_conn *c = front_conn_of(&s->peer->base);

    if (front_stream_orphan(s)) {
        c->orphans++;
        LIST_INSERT_HEAD(&c->room->orphans, s, linked);
    }
}

void front_conn_end_orphan(struct front_stream *s)
{
    struct front_conn *c = front_conn_of(&s->peer->base);

    LIST_REMOVE(s, linked);
    front_stream_free(s);
    c->orphans--;
    release(c);
}

void front_conn_read(struct front_conn *c, uint32_t events)
{
    bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

    if (ipc_conn_wants(&c->peer.base)) {
        c->broken |= events & ~EPOLLOUT && ipc_conn_read(&c->peer.base) == IPC_E_ENDED;
    } else {
        c->broken |= hung_up;
    }
    ipc_conn_mark(&c->peer.base);
}

/* Tells epoll what to wait for. */
static void watch(struct front_conn *c)
{
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = c};

    event.events |= ipc_conn_wants(&c->peer.base) ? EPOLLIN : 0;
    event.events |= ipc_outgoing_waiting(&c->peer.base.out) > 0 ? EPOLLOUT : 0;
    if (event.events != c->events) {
        c->events = event.events;
        epoll_ctl(c->room->epoll_fd, EPOLL_CTL_MOD, c->peer.base.fd, &event);
    }
}

void front_conn_settle(struct front_conn *c)
{
    int rc = c->broken ? IPC_E_ENDED : IPC_E_MORE;

    while (rc == IPC_E_MORE) {
        ipc_conn_handle(&c->peer.base);
        rc = ipc_conn_answer(&c->peer.base);
    }
    if (rc == IPC_E_ENDED) {
        front_conn_close(c);
    } else {
        watch(c);
    }
}

void front_conn_answer(struct front_conn *c)
{
    if (ipc_conn_answer(&c->peer.base) != 0) {
        ipc_conn_mark(&c->peer.base);
    }
    watch(c);
}
