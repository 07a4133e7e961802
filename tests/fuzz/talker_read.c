/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon sends to a client of talker.h, message by message. */
#include <errno.h>
#include <sys/socket.h>

#include "base/base.h"
#include "tests/fuzz/replay.h"
#include "tests/fuzz/talker_private.h"

static struct talk_sent *find_sent(struct talk_client *c, uint64_t cookie)
{
    for (size_t i = 0; i < c->sent_count; i++) {
        if (c->sent[i].cookie == cookie) {
            return &c->sent[i];
        }
    }
    return NULL;
}

/* Frames of a stream are answered as they came. Those that find no stream are answered at once. */
static bool in_turn(const struct talk_client *c, const struct talk_sent *t, uint16_t status)
{
    if (status == IPC_NOT_FOUND && !t->sure) {
        return true;
    }
    for (const struct talk_sent *older = c->sent; older < t; older++) {
        if (older->stream == t->stream) {
            return false;
        }
    }
    return true;
}

static void forget(struct talk_client *c, struct talk_sent *t)
{
    size_t after = c->sent_count - 1 - (size_t)(t - c->sent);

    if (t->slot >= 0) {
        c->slot_used[t->slot] = false;
    }
    memmove(t, t + 1, after * sizeof(*t));
    c->sent_count--;
}

static void result(struct talk_client *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct talk_sent *t = find_sent(c, h->time_ns);
    struct ipc_result r;

    MUST(ipc_get_result(payload, h->length, &r) == 0);
    MUST(!talk_is_others(c, h->time_ns));
    if (c->lying) { /* its frames may not be what it thinks */
        if (t) {
            forget(c, t);
        }
        return;
    }
    MUST(t && t->stream == h->stream && t->frame == h->frame);
    MUST(h->status < IPC_STATUS_COUNT && in_turn(c, t, h->status));
    MUST(t->statuses >> h->status & 1);
    MUST(r.credits <= 1 && (h->status == IPC_OK || r.out_bytes == 0));
    if (h->status == IPC_OK) {
        MUST(r.done_ns > 0 && h->length == IPC_RESULT_BYTES + (t->slot < 0 ? r.out_bytes : 0));
        if (t->judged) {
            talk_judge(t,
                       t->slot < 0 ? payload + IPC_RESULT_BYTES
                                   : c->memory + t->slot * TALK_SLOT_BYTES + TALK_OUT_OFFSET,
                       r.out_bytes);
        }
    }
    c->streams[h->stream].credits++; /* given back, or never used */
    forget(c, t);
}

static void opened(struct talk_client *c, struct talk_stream *s, const struct ipc_header *h,
                   const uint8_t *payload)
{
    struct ipc_opened o;

    MUST(ipc_get_opened(payload, h->length, &o) == 0 && s->opening > 0);
    s->opening--;
    if (h->status != IPC_OK) {
        return;
    }
    MUST(!s->open && h->stream > 0 && o.credits > 0 && o.credits <= IPC_CREDITS_MAX);
    MUST(h->length == IPC_OPENED_BYTES + (o.input_count + o.output_count) * IPC_TENSOR_BYTES);
    s->open = true;
    s->pool = s->numbered = false;
    s->credits = s->muddled ? 0 : o.credits;
    for (size_t i = 0; i < c->sent_count; i++) { /* those that did not wait for this */
        s->credits -= c->sent[i].stream == h->stream;
    }
}

static void closed(struct talk_stream *s, const struct ipc_header *h)
{
    MUST(s->closing > 0);
    s->closing--;
    if (h->status == IPC_OK) {
        MUST(s->open);
        s->open = s->pool = false;
    }
}

static void credit(struct talk_stream *s, const struct ipc_header *h, const uint8_t *payload)
{
    struct ipc_credit m;

    MUST(ipc_get_credit(payload, h->length, &m) == 0 && m.credits > 0);
    s->credits += m.credits;
}

static void message(struct talk_client *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct talk_stream *s = h->stream < TALK_STREAMS ? &c->streams[h->stream] : NULL;

    if (h->type == IPC_RESULT) {
        result(c, h, payload);
        return;
    }
    if (c->lying) {
        return;
    }
    MUST(s);
    switch (h->type) {
    case IPC_WELCOME:
    case IPC_EVENT:
        break;
    case IPC_OPENED:
        opened(c, s, h, payload);
        break;
    case IPC_POOLED:
        MUST(s->pooling > 0 && (h->status != IPC_OK || s->open));
        s->pooling--;
        s->pool |= h->status == IPC_OK;
        break;
    case IPC_CREDIT:
        credit(s, h, payload);
        break;
    case IPC_PONG:
        MUST(c->pings > 0 && h->length == h->frame % 65);
        c->pings--;
        break;
    case IPC_CLOSED:
        closed(s, h);
        break;
    default:
        MUST(!"an ERROR is only for who lies");
    }
}

/* Return: bytes of whole messages. */
static size_t messages(struct talk_client *c)
{
    size_t at = 0;

    while (c->rx_bytes - at >= IPC_HEADER_BYTES) {
        struct ipc_header h;

        MUST(ipc_get_header(c->rx + at, &h) == 0);
        MUST(IPC_HEADER_BYTES + h.length <= sizeof(c->rx));
        if (c->rx_bytes - at < IPC_HEADER_BYTES + h.length) {
            break;
        }
        message(c, &h, c->rx + at + IPC_HEADER_BYTES);
        at += IPC_HEADER_BYTES + h.length;
    }
    return at;
}

bool talk_read(struct talk_client *c)
{
    bool any = false;

    while (c->fd >= 0 && !c->paused) {
        ssize_t n = recv(c->fd, c->rx + c->rx_bytes, sizeof(c->rx) - c->rx_bytes, 0);
        size_t used;

        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n <= 0) { /* the daemon ends no connection of who is honest */
            MUST(c->lying);
            talk_leave(c);
            return true;
        }
        c->rx_bytes += (size_t)n;
        used = messages(c);
        memmove(c->rx, c->rx + used, c->rx_bytes - used);
        c->rx_bytes -= used;
        any = true;
    }
    return any;
}

void talk_flush(struct talk_client *c, bool all)
{
    c->hold = all ? 0 : c->hold;
    while (c->fd >= 0 && c->tx_bytes > c->hold) {
        ssize_t n = send(c->fd, c->tx, c->tx_bytes - c->hold, MSG_NOSIGNAL);

        if (n < 0) {
            MUST(errno == EAGAIN || c->lying);
            c->tx_bytes = errno == EAGAIN ? c->tx_bytes : 0;
            return;
        }
        memmove(c->tx, c->tx + n, c->tx_bytes - (size_t)n);
        c->tx_bytes -= (size_t)n;
    }
}

bool talk_settled(const struct talk_client *c)
{
    if (c->fd < 0 || c->lying) {
        return true;
    }
    for (size_t i = 0; i < TALK_STREAMS; i++) {
        const struct talk_stream *s = &c->streams[i];

        if (s->opening || s->closing || s->pooling) {
            return false;
        }
    }
    return c->tx_bytes == 0 && c->sent_count == 0 && c->pings == 0;
}
