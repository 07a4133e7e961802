/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/front_conn.h"

#include <string.h>
#include <sys/epoll.h>

#include "base.h"

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
    c->fd = fd;
    c->uid = uid;
    c->since_ns = base_now_ns();
    c->events = event.events;
    LIST_INSERT_HEAD(&room->conns, c, linked);
    room->conn_count++;
    return 0;
}

size_t front_conns_of(const struct front_room *room, uid_t uid)
{
    const struct front_conn *c;
    size_t count = 0;

    LIST_FOREACH(c, &room->conns, linked) {
        count += c->uid == uid;
    }
    return count;
}

static size_t taken_of(const struct front_stream *s, const char *model)
{
    return strcmp(s->model, model) == 0 ? s->taken : 0;
}

/* Of the model, with the listener or about to be. */
static size_t frames_of(const struct front_conn *c, const char *model)
{
    size_t frames = c->reading && strcmp(c->reading->stream->model, model) == 0;

    for (size_t i = 0; i < c->stream_count; i++) {
        frames += taken_of(c->streams[i], model);
    }
    return frames;
}

bool front_conn_share(const struct front_conn *c, const struct front_stream *s)
{
    const struct front_listener *l = &c->room->listener;
    const struct front_conn *other;
    const struct front_stream *o;
    size_t taken = 0;

    if (!l->share) {
        return true;
    }
    LIST_FOREACH(other, &c->room->conns, linked) {
        taken += other->uid == c->uid ? frames_of(other, s->model) : 0;
    }
    LIST_FOREACH(o, &c->room->orphans, linked) {
        other = base_container_of(o->peer, struct front_conn, peer);
        taken += other->uid == c->uid ? taken_of(o, s->model) : 0;
    }
    if (taken < l->share(l->user, s->model)) {
        return true;
    }
    c->room->held = true;
    return false;
}

/* Frees the struct, if it is closed and has no orphans. */
static void release(struct front_conn *c)
{
    if (c->closed && c->orphans == 0) {
        free(c);
    }
}

void front_conn_close(struct front_conn *c)
{
    c->closed = true;
    LIST_REMOVE(c, linked);
    c->room->conn_count--;
    close(c->fd);
    ipc_intake_deinit(&c->intake);
    ipc_outgoing_deinit(&c->peer.out);
    while (c->stream_count > 0) {
        struct front_stream *s = c->streams[--c->stream_count];

        if (front_stream_orphan(s)) {
            c->orphans++;
            LIST_INSERT_HEAD(&c->room->orphans, s, linked);
        }
    }
    release(c);
}

void front_conn_end_orphan(struct front_stream *s)
{
    struct front_conn *c = base_container_of(s->peer, struct front_conn, peer);

    LIST_REMOVE(s, linked);
    front_stream_free(s);
    c->orphans--;
    release(c);
}

void front_conn_end_stream(struct front_conn *c, struct front_stream *s)
{
    struct ipc_header closed = {.type = IPC_CLOSED, .stream = s->id};

    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i] == s) {
            c->streams[i] = c->streams[--c->stream_count];
            break;
        }
    }
    front_stream_free(s);
    front_send(&c->peer, closed, NULL, 0, NULL, 0);
}

bool front_conn_flush(struct front_conn *c)
{
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = c};
    bool backlogged = front_backlogged(&c->peer);

    if (!ipc_outgoing_flush(&c->peer.out, c->fd)) {
        c->broken = true;
    }
    event.events |= front_conn_wants(c) ? EPOLLIN : 0;
    event.events |= ipc_outgoing_waiting(&c->peer.out) > 0 ? EPOLLOUT : 0;
    if (event.events != c->events) {
        c->events = event.events;
        epoll_ctl(c->room->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
    }
    return backlogged && !front_backlogged(&c->peer);
}
