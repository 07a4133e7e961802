/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/connection.h"

#include <sys/random.h>
#include <sys/socket.h>

#include "base/base.h"

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
    uint8_t payload[IPC_EVENT_BYTES];

    ipc_put_event(&m, payload);
    ipc_conn_send(c, (struct ipc_header){.type = IPC_EVENT, .stream = stream}, payload,
                  sizeof(payload), NULL, 0);
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

void ipc_conn_end_stream(struct ipc_conn *c, struct ipc_stream *s)
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
            ipc_conn_end_stream(c, s); /* the stream that takes its place was already seen */
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
