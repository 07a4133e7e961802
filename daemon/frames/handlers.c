/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/handlers.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/config.h"
#include "daemon/frames/frame_ring.h"
#include "daemon/frames/opening.h"
#include "daemon/frames/preparing.h"

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
    c->peer.features = w.features = m.features & (IPC_FEATURE_F16 | IPC_FEATURE_DESCRIBED);
    snprintf(c->peer.client, sizeof(c->peer.client), "%s", m.client);
    ipc_put_welcome(&w, bytes);
    dmn_peer_send(&c->peer, (struct ipc_header){.type = IPC_WELCOME}, bytes, sizeof(bytes), NULL,
                  0);
    if (c->peer.frames->draining) { /* it greeted too late for dmn_frames_drain_begin() */
        dmn_conn_tell_draining(c);
    }
}

static void no_such_stream(struct dmn_conn *c, const struct ipc_header *h)
{
    struct ipc_reply reply;

    ipc_no_stream_reply(h, &reply);
    dmn_peer_reply(&c->peer, &reply);
}

/* Handles a FRAME or INLINE whose fixed part has arrived; then its payload is read or skipped. */
static void frame(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct dmn_stream *s = dmn_conn_stream(c, h->stream);
    struct dmn_record *r;
    size_t wanted;

    if (!s || s->closing) {
        no_such_stream(c, h);
        return;
    }
    r = dmn_stream_take(s, h, payload, &wanted);
    dmn_peer_mark(&c->peer);
    if (wanted > 0) {
        c->reading = r;
        ipc_intake_payload_to(&c->intake, r->buffer);
    } else if (r->state == DMN_RECORD_READING) {
        dmn_prepare_frame(r);
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

static void handle(void *conn, const struct ipc_header *h, const uint8_t *payload, int fd)
{
    struct dmn_conn *c = conn;
    struct dmn_stream *s;

    c->cut = dmn_loop_over(c->peer.frames->turns); /* this one still, the next one no more */

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

static bool takes(const void *conn)
{
    const struct dmn_conn *c = conn;

    return dmn_conn_takes(c) && !c->cut;
}

static bool has_room(const void *conn, uint32_t stream)
{
    const struct dmn_stream *s = dmn_conn_stream(conn, stream);

    return !s || s->closing || dmn_stream_room(s);
}

/* Goes on with an inline frame whose last byte has arrived. */
static void payload_done(void *conn)
{
    struct dmn_conn *c = conn;

    dmn_prepare_frame(base_take(c->reading));
    dmn_peer_mark(&c->peer);
}

void dmn_handle_messages(struct dmn_conn *c)
{
    static const struct ipc_intake_ops ops = {takes, has_room, handle, payload_done};

    c->cut = false;
    ipc_intake_run(&c->intake, &ops, c);
    if (c->intake.failed) {
        dmn_peer_fail(&c->peer, c->intake.failed, "%s", c->intake.why);
    }
}
