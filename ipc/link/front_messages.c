/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/front_messages.h"

#include <string.h>
#include <sys/epoll.h>

#include "base.h"
#include "ipc/link/front_open.h"

#define SLOW_NS (30 * BASE_NS_PER_S)  /* so long may a client read nothing */
#define HELLO_NS (10 * BASE_NS_PER_S) /* so long may it say nothing */
#define READ_ROUNDS 8                 /* so that one busy client does not keep the others waiting */

/* Says why and ends the connection. */
static void fail(struct front_conn *c, enum ipc_status status, const char *text)
{
    front_send(&c->peer, (struct ipc_header){.type = IPC_ERROR, .status = (uint16_t)status}, NULL,
               0, text, strlen(text));
    c->peer.ending = true;
}

static void hello(struct front_conn *c, const uint8_t *payload)
{
    struct ipc_welcome w = {.version = IPC_VERSION,
                            .payload_max = IPC_PAYLOAD_MAX,
                            .streams_max = FRONT_STREAMS_MAX,
                            .pool_bytes_max = FRONT_MEMORY_MAX,
                            .server = "piped-link " PIPED_VERSION,
                            .instance = c->room->instance};
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
        front_send(&c->peer, (struct ipc_header){.type = IPC_WELCOME}, bytes, sizeof(bytes), NULL,
                   0);
    }
}

static void no_such_stream(struct front_conn *c, const struct ipc_header *h)
{
    struct ipc_reply reply;

    ipc_no_stream_reply(h, &reply);
    front_reply(&c->peer, &reply);
}

/* A FRAME or INLINE whose fixed part has arrived; then its payload is read or skipped. */
static void frame(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct front_stream *s = front_conn_stream(c, h->stream);
    struct front_record *r;
    size_t wanted;

    if (!s || s->closing) {
        no_such_stream(c, h);
        return;
    }
    r = front_stream_take(s, h, payload, &wanted);
    if (wanted > 0) {
        c->reading = r;
        ipc_intake_payload_to(&c->intake, r->buffer);
    } else if (r->state == FRONT_READING) {
        front_stream_deliver(r);
    }
}

static void close_stream(struct front_conn *c, const struct ipc_header *h)
{
    struct front_stream *s = front_conn_stream(c, h->stream);
    struct ipc_header unknown = {.type = IPC_CLOSED, .stream = h->stream, .status = IPC_NOT_FOUND};

    if (!s) {
        front_send(&c->peer, unknown, NULL, 0, NULL, 0);
        return;
    }
    s->closing = true;
    if (front_stream_finished(s)) {
        front_conn_end_stream(c, s);
    }
}

static void cancel(const struct front_conn *c, const struct ipc_header *h)
{
    struct front_stream *s = front_conn_stream(c, h->stream);

    if (s) {
        front_stream_cancel(s, h->frame);
    }
}

static void handle(void *conn, const struct ipc_header *h, const uint8_t *payload, int fd)
{
    struct front_conn *c = conn;
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
        front_send(&c->peer, pong, payload, h->length, NULL, 0);
        break;
    case IPC_CLOSE:
        close_stream(c, h);
        break;
    case IPC_CANCEL:
        cancel(c, h);
        break;
    default: /* bit 15: for other servers */
        break;
    }
}

static bool has_room(const void *conn, uint32_t stream)
{
    const struct front_stream *s = front_conn_stream(conn, stream);

    return !s || s->closing || (front_stream_room(s) && front_conn_share(conn, s));
}

static void payload_done(void *conn)
{
    struct front_conn *c = conn;

    front_stream_deliver(base_take(c->reading));
}

static bool takes(const void *conn)
{
    return front_conn_takes(conn);
}

static void handle_messages(struct front_conn *c)
{
    static const struct ipc_intake_ops ops = {takes, has_room, handle, payload_done};

    ipc_intake_run(&c->intake, &ops, c);
    if (c->intake.failed && !c->peer.ending) {
        fail(c, c->intake.failed, c->intake.why);
    }
}

void front_messages_read(struct front_conn *c, uint32_t events)
{
    bool more = events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR);

    if (more && !front_conn_wants(c)) {
        c->broken |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        return;
    }
    for (int round = 0; more && round < READ_ROUNDS && front_conn_wants(c); round++) {
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

static bool is_slow(const struct front_conn *c)
{
    return c->peer.out.stuck_ns && base_now_ns() - c->peer.out.stuck_ns > SLOW_NS;
}

static void check_greeting(struct front_conn *c)
{
    if (!c->greeted && !c->peer.ending && base_now_ns() - c->since_ns > HELLO_NS) {
        fail(c, IPC_DEADLINE_EXCEEDED, "no HELLO within 10 s of connecting");
    }
}

bool front_messages_settle(struct front_conn *c)
{
    bool again = false;

    if (!c->broken) {
        handle_messages(c);
        check_greeting(c);
        for (size_t i = c->stream_count; i-- > 0;) {
            struct front_stream *s = c->streams[i];

            again |= front_stream_answer(s);
            if (front_stream_finished(s)) {
                front_conn_end_stream(c, s); /* the stream that takes its place was already seen */
            }
        }
        again |= front_conn_flush(c);
    }
    if (c->broken || is_slow(c) || (c->peer.ending && ipc_outgoing_waiting(&c->peer.out) == 0)) {
        front_conn_close(c);
        return false;
    }
    return again;
}
