/* SPDX-License-Identifier: Apache-2.0 */
/* The front: connections, and what each message does. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base.h"
#include "ipc/link/front_server_private.h"

#define READ_ROUNDS 8 /* so that one busy client does not keep the others waiting */

int front_conn_new(struct front *f, int fd)
{
    struct front_conn *c = calloc(1, sizeof(*c));
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = c};
    int error = -ENOMEM;

    if (!c || epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0) {
        error = c ? -errno : error;
        free(c);
        return error;
    }
    c->front = f;
    c->fd = fd;
    c->events = event.events;
    LIST_INSERT_HEAD(&f->conns, c, linked);
    f->conn_count++;
    return 0;
}

void front_conn_release(struct front_conn *c)
{
    if (c->closed && c->orphans == 0) {
        free(c);
    }
}

void front_conn_close(struct front_conn *c)
{
    c->closed = true;
    LIST_REMOVE(c, linked);
    c->front->conn_count--;
    close(c->fd);
    ipc_intake_deinit(&c->intake);
    ipc_outgoing_deinit(&c->out);
    while (c->stream_count > 0) {
        front_stream_orphan(c->streams[--c->stream_count]);
    }
    front_conn_release(c);
}

static bool takes(const struct front_conn *c)
{
    return !c->ending && !c->broken && !front_backlogged(c);
}

static bool wants_input(const struct front_conn *c)
{
    return takes(c) && ipc_intake_room(&c->intake);
}

/* Says why and ends the connection. */
static void fail(struct front_conn *c, enum ipc_status status, const char *text)
{
    front_send(c, (struct ipc_header){.type = IPC_ERROR, .status = (uint16_t)status}, NULL, 0, text,
               strlen(text));
    c->ending = true;
}

static void hello(struct front_conn *c, const uint8_t *payload)
{
    struct ipc_welcome w = {.version = IPC_VERSION,
                            .payload_max = IPC_PAYLOAD_MAX,
                            .streams_max = FRONT_STREAMS_MAX,
                            .pool_bytes_max = FRONT_MEMORY_MAX,
                            .server = "piped-link " PIPED_VERSION,
                            .instance = c->front->instance};
    uint8_t bytes[IPC_WELCOME_BYTES];
    struct ipc_hello m;

    if (c->greeted) {
        fail(c, IPC_PROTOCOL, "a second HELLO");
    } else if (ipc_get_hello(payload, IPC_HELLO_BYTES, &m) != 0) {
        fail(c, IPC_PROTOCOL, "a field of HELLO is out of range");
    } else if (m.version_min > IPC_VERSION || m.version_max < IPC_VERSION) {
        fail(c, IPC_UNSUPPORTED, "piped-link does not speak such a version");
    } else {
        c->greeted = true;
        ipc_put_welcome(&w, bytes);
        front_send(c, (struct ipc_header){.type = IPC_WELCOME}, bytes, sizeof(bytes), NULL, 0);
    }
}

static void no_such_stream(struct front_conn *c, const struct ipc_header *h)
{
    struct ipc_header answer = {.type = IPC_RESULT,
                                .stream = h->stream,
                                .status = IPC_NOT_FOUND,
                                .frame = h->frame,
                                .time_ns = h->time_ns};
    static const char text[] = "no such stream";
    struct ipc_result m = {0};
    uint8_t bytes[IPC_RESULT_BYTES];

    ipc_put_result(&m, bytes);
    front_send(c, answer, bytes, sizeof(bytes), text, sizeof(text) - 1);
}

/* A FRAME or INLINE whose fixed part has arrived; then its payload is read or skipped. */
static void frame(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct front_stream *s = front_conn_stream(c, h->stream);
    struct front_record *r = NULL;
    size_t wanted = 0;

    if (!s || s->closing) {
        no_such_stream(c, h);
    } else {
        r = front_stream_take(s, h, payload, &wanted);
    }
    if (wanted > 0) {
        c->reading = r;
        ipc_intake_payload_to(&c->intake, r->buffer, wanted);
        return;
    }
    if (h->type == IPC_INLINE) {
        ipc_intake_skip(&c->intake, h->length - IPC_FRAME_BYTES);
    }
    if (r && r->state == FRONT_READING) {
        front_stream_deliver(r);
    }
}

static void end_stream(struct front_conn *c, struct front_stream *s)
{
    struct ipc_header closed = {.type = IPC_CLOSED, .stream = s->id};

    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i] == s) {
            c->streams[i] = c->streams[--c->stream_count];
            break;
        }
    }
    front_stream_free(s);
    front_send(c, closed, NULL, 0, NULL, 0);
}

static void close_stream(struct front_conn *c, const struct ipc_header *h)
{
    struct front_stream *s = front_conn_stream(c, h->stream);
    struct ipc_header unknown = {.type = IPC_CLOSED, .stream = h->stream, .status = IPC_NOT_FOUND};

    if (!s) {
        front_send(c, unknown, NULL, 0, NULL, 0);
        return;
    }
    s->closing = true;
    if (front_stream_finished(s)) {
        end_stream(c, s);
    }
}

static void handle(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload, int fd)
{
    struct ipc_header pong = {
        .type = IPC_PONG, .stream = h->stream, .frame = h->frame, .time_ns = h->time_ns};

    if (!c->greeted && h->type != IPC_HELLO) {
        fail(c, IPC_PROTOCOL, "a message before HELLO");
        return;
    }
    switch (h->type) {
    case IPC_HELLO:
        hello(c, payload);
        break;
    case IPC_OPEN:
        front_open_stream(c, h, payload);
        break;
    case IPC_POOL:
        front_open_memory(c, h, payload, fd);
        break;
    case IPC_FRAME:
    case IPC_INLINE:
        frame(c, h, payload);
        break;
    case IPC_PING:
        front_send(c, pong, payload, h->length, NULL, 0);
        break;
    case IPC_CLOSE:
        close_stream(c, h);
        break;
    default: /* CANCEL: it is on its way, and answered as usual. Bit 15: for other servers. */
        break;
    }
}

/* Return: @h may be handled now. */
static bool has_room(const struct front_conn *c, const struct ipc_header *h)
{
    const struct front_stream *s;

    if (h->type != IPC_FRAME && h->type != IPC_INLINE) {
        return true;
    }
    s = front_conn_stream(c, h->stream);
    return !s || s->closing || front_stream_room(s);
}

/* Return: false: it needs more bytes or room first. */
static bool next_message(struct front_conn *c)
{
    struct ipc_intake *in = &c->intake;
    base_autoclose int fd = -1;
    const uint8_t *payload;
    struct ipc_header h;

    if (ipc_intake_in_payload(in)) {
        ipc_intake_payload(in);
        if (ipc_intake_finish(in)) {
            front_stream_deliver(base_take(c->reading));
        }
        if (ipc_intake_in_payload(in)) {
            return false;
        }
    }
    if (!takes(c) || !ipc_intake_next(in, &h) || !has_room(c, &h) ||
        !ipc_intake_take(in, &h, &payload, &fd)) {
        return false;
    }
    handle(c, &h, payload, fd);
    return true;
}

static void handle_messages(struct front_conn *c)
{
    while (next_message(c)) {
    }
    ipc_intake_compact(&c->intake);
    if (c->intake.failed && !c->ending) {
        fail(c, c->intake.failed, c->intake.why);
    }
}

void front_conn_read(struct front_conn *c, uint32_t events)
{
    bool more = events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);

    if (more && !wants_input(c)) {
        c->broken |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        return;
    }
    for (int round = 0; more && round < READ_ROUNDS && wants_input(c); round++) {
        ssize_t n = ipc_intake_receive(&c->intake, c->fd, &more);

        if (n < 0) {
            c->broken = true;
        }
        if (n <= 0) {
            return;
        }
        handle_messages(c);
    }
}

void front_conn_flush(struct front_conn *c)
{
    struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = c};

    if (!ipc_outgoing_flush(&c->out, c->fd)) {
        c->broken = true;
    }
    event.events |= wants_input(c) ? EPOLLIN : 0;
    event.events |= ipc_outgoing_waiting(&c->out) > 0 ? EPOLLOUT : 0;
    if (event.events != c->events) {
        c->events = event.events;
        epoll_ctl(c->front->epoll_fd, EPOLL_CTL_MOD, c->fd, &event);
    }
}

static bool is_slow(const struct front_conn *c)
{
    return c->out.stuck_ns && base_now_ns() - c->out.stuck_ns > FRONT_SLOW_NS;
}

bool front_conn_settle(struct front_conn *c)
{
    bool backlogged = front_backlogged(c), answered = false;

    if (!c->broken) {
        handle_messages(c);
        for (size_t i = c->stream_count; i-- > 0;) {
            struct front_stream *s = c->streams[i];

            answered |= front_stream_answer(s);
            if (front_stream_finished(s)) {
                end_stream(c, s); /* the stream that takes its place was already seen */
            }
        }
        front_conn_flush(c);
    }
    if (c->broken || is_slow(c) || (c->ending && ipc_outgoing_waiting(&c->out) == 0)) {
        front_conn_close(c);
        return false;
    }
    return answered || (backlogged && !front_backlogged(c));
}
