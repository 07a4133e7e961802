/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link's front: connections, and what becomes of messages. */
#include <sys/epoll.h>

#include "apps/link/front/server_private.h"

#define BACKLOG_MAX ((size_t)1 << 20)

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
    c->room = room;
    c->uid = uid;
    c->events = event.events;
    ipc_conn_init(&c->base, &room->server, fd);
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

/* Return: the listener has not all the frames of the stream's model yet that this user may have;
 * else they are held until one is answered. */
static bool has_share(const struct front_conn *c, const struct front_stream *s)
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
        taken += o->conn->uid == c->uid ? taken_of(o, s->model) : 0;
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
    if (c->base.closed && c->orphans == 0) {
        free(c);
    }
}

void front_conn_close(struct front_conn *c)
{
    ipc_conn_leave(&c->base);
    front_conns_let_go(c->room);
    ipc_conn_deinit(&c->base);
    release(c);
}

void front_conn_end_orphan(struct front_stream *s)
{
    struct front_conn *c = s->conn;

    LIST_REMOVE(s, linked);
    front_stream_free(s);
    c->orphans--;
    release(c);
}

void front_conn_read(struct front_conn *c, uint32_t events)
{
    bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

    if (ipc_conn_wants(&c->base)) {
        c->broken |= events & ~EPOLLOUT && ipc_conn_read(&c->base) == IPC_E_ENDED;
    } else {
        c->broken |= hung_up;
    }
    ipc_conn_mark(&c->base);
}

/* Tells epoll what to wait for. */
static void watch(struct front_conn *c)
{
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = c};

    event.events |= ipc_conn_wants(&c->base) ? EPOLLIN : 0;
    event.events |= ipc_outgoing_waiting(&c->base.out) > 0 ? EPOLLOUT : 0;
    if (event.events != c->events) {
        c->events = event.events;
        epoll_ctl(c->room->epoll_fd, EPOLL_CTL_MOD, c->base.fd, &event);
    }
}

void front_conn_settle(struct front_conn *c)
{
    int rc = c->broken ? IPC_E_ENDED : IPC_E_MORE;

    while (rc == IPC_E_MORE) {
        ipc_conn_handle(&c->base);
        rc = ipc_conn_answer(&c->base);
    }
    if (rc == IPC_E_ENDED) {
        front_conn_close(c);
    } else {
        watch(c);
    }
}

void front_conn_answer(struct front_conn *c)
{
    if (ipc_conn_answer(&c->base) != 0) {
        ipc_conn_mark(&c->base);
    }
    watch(c);
}

/* ---- what messages are to it ---- */

static void refuse(struct ipc_conn *c, const struct ipc_header *h, enum ipc_status status,
                   const char *text)
{
    struct ipc_reply reply;

    ipc_open_refusal(h, status, text, &reply);
    ipc_conn_reply(c, &reply);
}

static void describe(const struct brd_tensor *t, size_t count, const char *kind,
                     struct ipc_tensor *ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = (struct ipc_tensor){.dtype = t[i].dtype,
                                     .rank = t[i].rank,
                                     .offset = front_offset(t, count, i),
                                     .bytes = t[i].bytes};
        snprintf(ret[i].name, sizeof(ret[i].name), "%s%zu", kind, i);
        memcpy(ret[i].dim, t[i].dim, sizeof(ret[i].dim));
    }
}

static void accept_open(struct front_stream *s, uint32_t depth)
{
    const struct front_format *m = &s->format;
    struct ipc_opened o = {.credits = s->base.flow.credits,
                           .depth = base_min(depth, s->base.flow.credits),
                           .input_count = (uint32_t)m->input_count,
                           .output_count = (uint32_t)m->output_count,
                           .input_bytes = m->input_bytes,
                           .output_bytes = m->output_bytes};
    struct ipc_tensor tensors[2 * IPC_TENSORS_MAX];

    describe(m->input, m->input_count, "input", tensors);
    describe(m->output, m->output_count, "output", tensors + m->input_count);
    ipc_conn_send(&s->conn->base, (struct ipc_header){.type = IPC_OPENED, .stream = s->base.id}, &o,
                  sizeof(o), tensors, (m->input_count + m->output_count) * sizeof(*tensors));
}

static void open_stream(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    const struct ipc_open_place place = {.in_use = ipc_conn_stream(c, h->stream) != NULL,
                                         .streams = c->stream_count,
                                         .streams_max = FRONT_STREAMS_MAX};
    const struct front_model *m;
    const char *why = "";
    enum ipc_status status;
    struct front_stream *s;
    struct ipc_open o;

    status = ipc_open_check(h, payload, &place, &o, &why);
    if (status != IPC_OK) {
        refuse(c, h, status, why);
        return;
    }
    if (o.policy != IPC_POLICY_BLOCK) {
        refuse(c, h, IPC_UNSUPPORTED, "boards take frames under policy block");
        return;
    }
    m = front_list_find(&front_conn_of(c)->room->models, o.model);
    if (!m) {
        refuse(c, h, IPC_NOT_FOUND, "no boards serve such a model");
        return;
    }
    if (o.pixfmt != IPC_PIX_TENSOR && !m->pictures) {
        refuse(c, h, IPC_UNSUPPORTED, "boards take tensors of this model (pixfmt 0)");
        return;
    }
    s = front_stream_new(front_conn_of(c), h->stream, m, &o);
    if (!s) {
        refuse(c, h, IPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    c->streams[c->stream_count++] = &s->base;
    accept_open(s, m->depth);
}

static void open_memory(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload,
                        int fd)
{
    struct ipc_stream *s = ipc_conn_stream(c, h->stream);
    const struct ipc_pool_place place = {.memory = s && !s->closing ? s->memory : NULL,
                                         .total = &front_conn_of(c)->memory_bytes,
                                         .total_max = FRONT_MEMORY_MAX,
                                         .over = "too much client memory"};
    struct ipc_reply reply;

    ipc_pool_take(h, payload, fd, &place, &reply);
    ipc_conn_reply(c, &reply);
}

static void welcome(const struct ipc_conn *c, struct ipc_welcome *ret)
{
    ret->streams_max = FRONT_STREAMS_MAX;
    ret->pool_bytes_max = FRONT_MEMORY_MAX;
    snprintf(ret->server, sizeof(ret->server), "piped-link " PIPED_VERSION);
}

static bool room(const struct ipc_conn *c, const struct ipc_stream *stream)
{
    const struct front_stream *s = front_stream_of(stream);

    return front_stream_room(s) && has_share(front_conn_of(c), s);
}

static void frame(void *record)
{
    struct front_record *r = record;
    struct front_conn *c = r->stream->conn;

    front_stream_deliver(r);
    if (r->state == FRONT_DONE) { /* it may have counted while it was read */
        front_conns_let_go(c->room);
    }
}

static void finished(struct ipc_stream *s)
{
    front_stream_free(front_stream_of(s));
}

/* The stream becomes an orphan, or is freed. */
static void orphan(struct ipc_stream *stream)
{
    struct front_stream *s = front_stream_of(stream);
    struct front_conn *c = s->conn;

    if (front_stream_orphan(s)) {
        c->orphans++;
        LIST_INSERT_HEAD(&c->room->orphans, s, linked);
    }
}

static size_t backlog_max(const struct ipc_conn *c)
{
    return BACKLOG_MAX;
}

const struct ipc_server_ops front_messages = {.welcome = welcome,
                                              .open = open_stream,
                                              .memory = open_memory,
                                              .room = room,
                                              .take = front_stream_take,
                                              .frame = frame,
                                              .cancel = front_stream_cancel,
                                              .answer = front_stream_answer,
                                              .finished = finished,
                                              .orphaned = orphan,
                                              .backlog_max = backlog_max};
