/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/connection.h"

#include <sys/random.h>
#include <sys/socket.h>

#define READ_ROUNDS 8 /* so that one busy client does not keep the others waiting */

void ipc_server_init(struct ipc_server *s, const struct ipc_server_ops *ops)
{
    s->ops = ops;
    if (getrandom(&s->instance, sizeof(s->instance), GRND_NONBLOCK) != sizeof(s->instance)) {
        s->instance = base_now_ns() ^ ((uint64_t)getpid() << 40);
    }
}

bool ipc_server_refuse(int fd, enum ipc_status status, const char *text)
{
    uint8_t bytes[IPC_HEADER_BYTES + IPC_TEXT_MAX];
    size_t count = ipc_put_error((uint16_t)status, text, bytes);
    bool told = send(fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;

    close(fd);
    return told;
}

void ipc_conn_init(struct ipc_conn *c, struct ipc_server *s, int fd)
{
    c->server = s;
    c->fd = fd;
    c->since_ns = base_now_ns();
    snprintf(c->client, sizeof(c->client), "?");
    LIST_INSERT_HEAD(&s->conns, c, linked);
    s->conn_count++;
}

static void settled(struct ipc_conn *c)
{
    if (c->unsettled) {
        c->unsettled = false;
        LIST_REMOVE(c, waits);
    }
}

void ipc_conn_leave(struct ipc_conn *c)
{
    c->closed = true;
    settled(c);
    LIST_REMOVE(c, linked);
    c->server->conn_count--;
    while (c->stream_count > 0) {
        c->server->ops->orphaned(c->streams[--c->stream_count]);
    }
    ipc_intake_deinit(&c->intake);
}

void ipc_conn_deinit(struct ipc_conn *c)
{
    base_close_fd(&c->fd);
    ipc_outgoing_deinit(&c->out);
}

void ipc_conn_send(struct ipc_conn *c, struct ipc_header h, const void *payload, size_t bytes,
                   const void *tail, size_t tail_bytes)
{
    if (c->closed || c->ending) { /* nothing follows an ERROR */
        return;
    }
    if (!ipc_outgoing_add(&c->out, h, payload, bytes, tail, tail_bytes)) {
        if (c->server->ops->failed) {
            c->server->ops->failed(c, IPC_RESOURCE_EXHAUSTED, NULL);
        }
        c->ending = true;
    }
    ipc_conn_mark(c);
}

void ipc_conn_event(struct ipc_conn *c, uint32_t stream, enum ipc_event event, uint32_t epoch)
{
    struct ipc_event_msg m = {.event = event, .epoch = epoch};

    ipc_conn_send(c, (struct ipc_header){.type = IPC_EVENT, .stream = stream}, &m, sizeof(m), NULL,
                  0);
}

void ipc_conn_fail(struct ipc_conn *c, enum ipc_status status, const char *format, ...)
{
    char text[IPC_TEXT_MAX];
    va_list args;

    if (c->ending || c->closed) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (c->server->ops->failed) {
        c->server->ops->failed(c, status, text);
    }
    ipc_conn_send(c, (struct ipc_header){.type = IPC_ERROR, .status = (uint16_t)status}, NULL, 0,
                  text, strlen(text));
    c->ending = true;
}

/* Of a finished stream: appends CLOSED. The last stream takes its place in the array. */
static void end_stream(struct ipc_conn *c, struct ipc_stream *s)
{
    struct ipc_header closed = {.type = IPC_CLOSED, .stream = s->id};

    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i] == s) {
            c->streams[i] = c->streams[--c->stream_count];
            break;
        }
    }
    c->server->ops->finished(s);
    ipc_conn_send(c, closed, NULL, 0, NULL, 0);
}

int ipc_conn_answer(struct ipc_conn *c)
{
    bool more = false, backlogged;

    for (size_t i = c->stream_count; i-- > 0;) {
        struct ipc_stream *s = c->streams[i];

        more |= c->server->ops->answer(s);
        if (ipc_stream_finished(s)) {
            end_stream(c, s); /* the stream that takes its place was already seen */
        }
    }
    backlogged = ipc_conn_backlogged(c); /* then answers may still be in a ring */
    if (!ipc_outgoing_flush(&c->out, c->fd) || (c->ending && !ipc_outgoing_waiting(&c->out))) {
        return IPC_E_ENDED;
    }
    settled(c);
    if (backlogged && !ipc_conn_backlogged(c)) {
        ipc_conn_mark(c);
        more = true;
    }
    return more && ipc_intake_waits(&c->intake) ? IPC_E_MORE : 0;
}

/* ---- what it receives ---- */

static void hello(struct ipc_conn *c, const uint8_t *payload)
{
    struct ipc_welcome w = {
        .version = IPC_VERSION, .payload_max = IPC_PAYLOAD_MAX, .instance = c->server->instance};
    struct ipc_hello m;

    if (ipc_get_hello(payload, IPC_HELLO_BYTES, &m) != 0) {
        ipc_conn_fail(c, IPC_PROTOCOL, "a field of HELLO is out of range");
        return;
    }
    if (m.version_min > IPC_VERSION || m.version_max < IPC_VERSION) {
        ipc_conn_fail(c, IPC_UNSUPPORTED, "this server speaks version %u, the client %u to %u",
                      IPC_VERSION, m.version_min, m.version_max);
        return;
    }
    c->greeted = true;
    snprintf(c->client, sizeof(c->client), "%s", m.client);
    c->server->ops->welcome(c, &w);
    c->features = w.features &= m.features;
    ipc_conn_send(c, (struct ipc_header){.type = IPC_WELCOME}, &w, sizeof(w), NULL, 0);
    if (c->server->ops->greeted) {
        c->server->ops->greeted(c);
    }
}

/* The RESULT of a FRAME or INLINE for a stream that is not open. */
static void no_such_stream(struct ipc_conn *c, const struct ipc_header *h)
{
    static const struct ipc_result none;
    static const char text[] = "no such stream";

    ipc_conn_send(c,
                  (struct ipc_header){.type = IPC_RESULT,
                                      .stream = h->stream,
                                      .status = IPC_NOT_FOUND,
                                      .frame = h->frame,
                                      .time_ns = h->time_ns},
                  &none, sizeof(none), text, sizeof(text) - 1);
}

/* Handles a FRAME or INLINE whose fixed part has arrived; then its payload is read or skipped. */
static void frame(struct ipc_conn *c, struct ipc_stream *s, const struct ipc_header *h,
                  const uint8_t *payload)
{
    uint8_t *to = NULL;
    void *record;

    if (!s || s->closing) {
        no_such_stream(c, h);
        return;
    }
    record = c->server->ops->take(s, h, payload, &to);
    ipc_conn_mark(c);
    if (record && to) {
        c->reading = record;
        ipc_intake_payload_to(&c->intake, to);
    } else if (record) {
        c->server->ops->frame(record);
    }
}

static void close_stream(struct ipc_conn *c, struct ipc_stream *s, const struct ipc_header *h)
{
    struct ipc_header unknown = {.type = IPC_CLOSED, .stream = h->stream, .status = IPC_NOT_FOUND};

    if (!s) {
        ipc_conn_send(c, unknown, NULL, 0, NULL, 0);
        return;
    }
    s->closing = true;
    if (ipc_stream_finished(s)) {
        end_stream(c, s);
    }
}

static void ping(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct ipc_header pong = {
        .type = IPC_PONG, .stream = h->stream, .frame = h->frame, .time_ns = h->time_ns};

    ipc_conn_send(c, pong, payload, h->length, NULL, 0);
}

static bool over(const struct ipc_conn *c)
{
    return c->server->ops->over && c->server->ops->over(c);
}

/* @s: the message's; NULL: it is not open, or the message is the connection's. */
static void handle(struct ipc_conn *c, struct ipc_stream *s, const struct ipc_header *h,
                   const uint8_t *payload, int fd)
{
    if (!c->greeted && h->type != IPC_HELLO) {
        ipc_conn_fail(c, IPC_PROTOCOL, "%s before HELLO", ipc_type_name(h->type));
        return;
    }
    switch (h->type) {
    case IPC_HELLO:
        if (c->greeted) {
            ipc_conn_fail(c, IPC_PROTOCOL, "a second HELLO");
        } else {
            hello(c, payload);
        }
        break;
    case IPC_OPEN:
        c->server->ops->open(c, h, payload);
        break;
    case IPC_POOL:
        c->server->ops->memory(c, h, payload, fd);
        break;
    case IPC_FRAME:
    case IPC_INLINE:
        frame(c, s, h, payload);
        break;
    case IPC_CANCEL:
        if (s) {
            c->server->ops->cancel(s, h->frame);
            ipc_conn_mark(c);
        }
        break;
    case IPC_PING:
        ping(c, h, payload);
        break;
    case IPC_CLOSE:
        close_stream(c, s, h);
        break;
    default: /* bit 15 is set: meant for servers that know it */
        break;
    }
}

/* Return: a frame of this stream can be taken, or refused at once. */
static bool has_room(const struct ipc_conn *c, const struct ipc_stream *s)
{
    return !s || s->closing || c->server->ops->room(c, s);
}

/* Return: false: it needs more bytes or room first. */
static bool next_message(struct ipc_conn *c)
{
    base_autoclose int fd = -1;
    const uint8_t *payload;
    struct ipc_stream *s;
    struct ipc_header h;

    if (ipc_intake_in_payload(&c->intake) && ipc_intake_payload(&c->intake)) {
        c->server->ops->frame(base_take(c->reading));
        ipc_conn_mark(c);
    }
    if (c->cut || !ipc_intake_waits(&c->intake) || !ipc_conn_takes(c) ||
        !ipc_intake_next(&c->intake, &h)) {
        return false;
    }
    s = ipc_conn_stream(c, h.stream);
    if ((h.type == IPC_FRAME || h.type == IPC_INLINE) && !has_room(c, s)) {
        return false;
    }
    payload = ipc_intake_take(&c->intake, &h, &fd);
    if (!payload) {
        return false;
    }
    c->cut = over(c); /* this one still, the next one no more */
    handle(c, s, &h, payload, fd);
    return true;
}

void ipc_conn_handle(struct ipc_conn *c)
{
    c->cut = false;
    while (next_message(c)) {
    }
    ipc_intake_compact(&c->intake);
    if (c->intake.failed) {
        ipc_conn_fail(c, c->intake.failed, "%s", c->intake.why);
    }
}

int ipc_conn_read(struct ipc_conn *c)
{
    bool full = false;

    ipc_conn_handle(c);
    for (int round = 0; round < READ_ROUNDS && ipc_conn_wants(c) && !c->cut; round++) {
        ssize_t n;

        full = false;
        n = ipc_intake_receive(&c->intake, c->fd, &full);
        if (n <= 0) {
            return n == 0 ? 0 : IPC_E_ENDED;
        }
        ipc_conn_handle(c);
        if (!full || over(c)) {
            break;
        }
    }
    return c->cut || (full && ipc_conn_wants(c)) ? IPC_E_MORE : 0;
}
