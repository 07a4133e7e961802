/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/front/messages.h"

#include "apps/link/front/connection.h"
#include "base/base.h"
#include "ipc/server/open_rules.h"

#define BACKLOG_MAX ((size_t)1 << 20)

static void refuse(struct ipc_conn *c, const struct ipc_header *h, enum ipc_status status,
                   const char *text)
{
    struct ipc_reply reply;

    ipc_open_refusal(h, status, text, &reply);
    ipc_conn_reply(c, &reply);
}

static size_t describe(const struct brd_tensor *t, size_t count, const char *kind, uint8_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        struct ipc_tensor w = {.dtype = t[i].dtype, .rank = t[i].rank, .bytes = t[i].bytes};

        w.offset = front_offset(t, count, i);
        snprintf(w.name, sizeof(w.name), "%s%zu", kind, i);
        memcpy(w.dim, t[i].dim, sizeof(w.dim));
        ipc_put_tensor(&w, ret + i * IPC_TENSOR_BYTES);
    }
    return count * IPC_TENSOR_BYTES;
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
    uint8_t payload[IPC_OPENED_BYTES], tensors[2 * IPC_TENSORS_MAX * IPC_TENSOR_BYTES];
    size_t bytes = describe(m->input, m->input_count, "input", tensors);

    bytes += describe(m->output, m->output_count, "output", tensors + bytes);
    ipc_put_opened(&o, payload);
    ipc_conn_send(&s->peer->base, (struct ipc_header){.type = IPC_OPENED, .stream = s->base.id},
                  payload, sizeof(payload), tensors, bytes);
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
    s = front_stream_new(front_peer_of(c), h->stream, m, &o);
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
                                         .total = &front_peer_of(c)->memory_bytes,
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

    return front_stream_room(s) && front_conn_share(front_conn_of(c), s);
}

static void frame(void *record)
{
    struct front_record *r = record;
    struct front_conn *c = front_conn_of(&r->stream->peer->base);

    front_stream_deliver(r);
    if (r->state == FRONT_DONE) { /* it may have counted while it was read */
        front_conns_let_go(c->room);
    }
}

static void finished(struct ipc_stream *s)
{
    front_stream_free(front_stream_of(s));
}

static size_t backlog_max(const struct ipc_conn *c)
{
    return BACKLOG_MAX;
}

const struct ipc_server_ops *front_messages(void)
{
    static const struct ipc_server_ops ops = {.welcome = welcome,
                                              .open = open_stream,
                                              .memory = open_memory,
                                              .room = room,
                                              .take = front_stream_take,
                                              .frame = frame,
                                              .cancel = front_stream_cancel,
                                              .answer = front_stream_answer,
                                              .finished = finished,
                                              .orphaned = front_conn_orphan,
                                              .backlog_max = backlog_max};

    return &ops;
}
