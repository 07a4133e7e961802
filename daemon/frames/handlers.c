/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/handlers.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/frames/frame_ring.h"
#include "daemon/frames/opening.h"
#include "daemon/frames/submit.h"

static void hello(struct dmn_conn *c, const uint8_t *payload)
{
    struct ipc_welcome w = {.version = IPC_VERSION,
                            .payload_max = IPC_PAYLOAD_MAX,
                            .pool_bytes_max = IPC_POOL_BYTES_MAX,
                            .server = "piped " PIPED_VERSION,
                            .instance = c->peer.frames->instance};
    uint8_t bytes[IPC_WELCOME_BYTES];
    struct ipc_hello m;

    w.streams_max = (uint32_t)dmn_config_int(*c->peer.frames->config, DMN_KEY_LIMIT_STREAMS);
    if (ipc_get_hello(payload, IPC_HELLO_BYTES, &m) != 0) {
        dmn_peer_fail(&c->peer, IPC_PROTOCOL, "a field of HELLO is out of range");
        return;
    }
    if (m.version_min > IPC_VERSION || m.version_max < IPC_VERSION) {
        dmn_peer_fail(&c->peer, IPC_UNSUPPORTED,
                      "this daemon speaks version %u, the client %u to %u", IPC_VERSION,
                      m.version_min, m.version_max);
        return;
    }
    c->greeted = true;
    snprintf(c->peer.client, sizeof(c->peer.client), "%s", m.client);
    ipc_put_welcome(&w, bytes);
    dmn_peer_send(&c->peer, (struct ipc_header){.type = IPC_WELCOME}, bytes, sizeof(bytes), NULL,
                  0);
}

static void no_such_stream(struct dmn_conn *c, const struct ipc_header *h)
{
    struct ipc_result m = {0};
    uint8_t bytes[IPC_RESULT_BYTES];
    static const char text[] = "no such stream";

    ipc_put_result(&m, bytes);
    dmn_peer_send(&c->peer,
                  (struct ipc_header){.type = IPC_RESULT,
                                      .stream = h->stream,
                                      .status = IPC_NOT_FOUND,
                                      .frame = h->frame,
                                      .time_ns = h->time_ns},
                  bytes, sizeof(bytes), text, sizeof(text) - 1);
}

/* Handles a FRAME or INLINE whose fixed part has arrived; then its payload is read or skipped. */
static void frame(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct dmn_stream *s = dmn_conn_stream(c, h->stream);
    struct dmn_record *r = NULL;
    size_t wanted = 0;

    if (!s || s->closing) {
        no_such_stream(c, h);
    } else {
        r = dmn_stream_take(s, h, payload, &wanted);
        dmn_peer_mark(&c->peer);
    }
    if (wanted > 0) {
        c->reading = r;
        ipc_intake_payload_to(&c->intake, r->buffer, wanted);
        return;
    }
    if (h->type == IPC_INLINE) {
        ipc_intake_skip(&c->intake, h->length - IPC_FRAME_BYTES);
    }
    if (r && r->state == DMN_RECORD_READING) {
        dmn_submit_frame(r);
    }
}

static void close_stream(struct dmn_conn *c, const struct ipc_header *h)
{
    struct dmn_stream *s = dmn_conn_stream(c, h->stream);

    if (!s) {
        dmn_peer_send(
            &c->peer,
            (struct ipc_header){.type = IPC_CLOSED, .stream = h->stream, .status = IPC_NOT_FOUND},
            NULL, 0, NULL, 0);
        return;
    }
    s->closing = true;
    if (dmn_stream_finished(s)) {
        dmn_conn_end_stream(c, s);
    }
}

static void handle(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload, int fd)
{
    struct dmn_stream *s;

    if (!c->greeted && h->type != IPC_HELLO) {
        dmn_peer_fail(&c->peer, IPC_PROTOCOL, "%s before HELLO", ipc_type_name(h->type));
        return;
    }
    switch (h->type) {
    case IPC_HELLO:
        if (c->greeted) {
            dmn_peer_fail(&c->peer, IPC_PROTOCOL, "a second HELLO");
        } else {
            hello(c, payload);
        }
        break;
    case IPC_OPEN:
        dmn_open_stream(c, h, payload);
        break;
    case IPC_POOL:
        dmn_open_memory(c, h, payload, fd);
        break;
    case IPC_FRAME:
    case IPC_INLINE:
        frame(c, h, payload);
        break;
    case IPC_CANCEL:
        s = dmn_conn_stream(c, h->stream);
        if (s) {
            dmn_stream_cancel(s, h->frame);
            dmn_peer_mark(&c->peer);
        }
        break;
    case IPC_PING:
        dmn_peer_send(
            &c->peer,
            (struct ipc_header){
                .type = IPC_PONG, .stream = h->stream, .frame = h->frame, .time_ns = h->time_ns},
            payload, h->length, NULL, 0);
        break;
    case IPC_CLOSE:
        close_stream(c, h);
        break;
    default: /* bit 15 is set: meant for servers that know it */
        break;
    }
}

/* Return: @h may be handled now. */
static bool has_room(const struct dmn_conn *c, const struct ipc_header *h)
{
    const struct dmn_stream *s;

    if (h->type != IPC_FRAME && h->type != IPC_INLINE) {
        return true;
    }
    s = dmn_conn_stream(c, h->stream);
    return !s || s->closing || dmn_stream_room(s);
}

/* Goes on with an inline frame whose last byte has arrived. */
static void finish_reading(struct dmn_conn *c)
{
    if (ipc_intake_finish(&c->intake)) {
        dmn_submit_frame(base_take(c->reading));
        dmn_peer_mark(&c->peer);
    }
}

/* Return: false: it needs more bytes or room first. */
static bool next_message(struct dmn_conn *c)
{
    struct ipc_intake *in = &c->intake;
    base_autoclose int fd = -1;
    const uint8_t *payload;
    struct ipc_header h;

    if (ipc_intake_in_payload(in)) {
        ipc_intake_payload(in);
        finish_reading(c);
        if (ipc_intake_in_payload(in)) {
            return false;
        }
    }
    if (!dmn_conn_takes(c) || !ipc_intake_next(in, &h) || !has_room(c, &h) ||
        !ipc_intake_take(in, &h, &payload, &fd)) {
        return false;
    }
    handle(c, &h, payload, fd);
    return true;
}

void dmn_handle_messages(struct dmn_conn *c)
{
    while (next_message(c)) {
    }
    ipc_intake_compact(&c->intake);
    if (c->intake.failed) {
        dmn_peer_fail(&c->peer, c->intake.failed, "%s", c->intake.why);
    }
}
