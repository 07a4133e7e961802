/* SPDX-License-Identifier: Apache-2.0 */
/* The front: OPEN and POOL. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "ipc/link/front_server_private.h"

static void refuse(struct front_conn *c, const struct ipc_header *h, enum ipc_status status,
                   const char *text)
{
    struct ipc_opened m = {0};
    uint8_t payload[IPC_OPENED_BYTES];

    ipc_put_opened(&m, payload);
    front_send(
        c, (struct ipc_header){.type = IPC_OPENED, .stream = h->stream, .status = (uint16_t)status},
        payload, sizeof(payload), text, strlen(text));
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
    struct ipc_opened o = {.credits = s->credits,
                           .depth = base_min(depth, s->credits),
                           .input_count = (uint32_t)m->input_count,
                           .output_count = (uint32_t)m->output_count,
                           .input_bytes = m->input_bytes,
                           .output_bytes = m->output_bytes};
    uint8_t payload[IPC_OPENED_BYTES], tensors[2 * IPC_TENSORS_MAX * IPC_TENSOR_BYTES];
    size_t bytes = describe(m->input, m->input_count, "input", tensors);

    bytes += describe(m->output, m->output_count, "output", tensors + bytes);
    ipc_put_opened(&o, payload);
    front_send(s->conn, (struct ipc_header){.type = IPC_OPENED, .stream = s->id}, payload,
               sizeof(payload), tensors, bytes);
}

void front_open_stream(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    const struct front_model *m;
    struct front_stream *s;
    struct ipc_open o;

    if (ipc_get_open(payload, IPC_OPEN_BYTES, &o) != 0 || h->stream == 0) {
        refuse(c, h, IPC_INVALID_ARGUMENT, "a field of OPEN is out of range");
        return;
    }
    if (front_conn_stream(c, h->stream)) {
        refuse(c, h, IPC_INVALID_ARGUMENT, "the stream's number is in use");
        return;
    }
    if (c->stream_count == FRONT_STREAMS_MAX) {
        refuse(c, h, IPC_RESOURCE_EXHAUSTED, "too many streams on this connection");
        return;
    }
    if (o.pixfmt != IPC_PIX_TENSOR || o.policy != IPC_POLICY_BLOCK) {
        refuse(c, h, IPC_UNSUPPORTED, "boards take tensors (pixfmt 0) under policy block");
        return;
    }
    m = front_model_find(c->front, o.model);
    if (!m) {
        refuse(c, h, IPC_NOT_FOUND, "no boards serve such a model");
        return;
    }
    s = front_stream_new(c, h->stream, m, &o);
    if (!s) {
        refuse(c, h, IPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    c->streams[c->stream_count++] = s;
    accept_open(s, m->depth);
}

void front_open_memory(struct front_conn *c, const struct ipc_header *h, const uint8_t *payload,
                       int fd)
{
    struct ipc_header answer = {.type = IPC_POOLED, .stream = h->stream};
    struct front_stream *s = front_conn_stream(c, h->stream);
    enum ipc_status status = IPC_INVALID_ARGUMENT;
    const char *text = "";
    struct ipc_pool p = {0};

    if (ipc_get_pool(payload, IPC_POOL_BYTES, &p) != 0) {
        text = "a field of POOL is out of range";
    } else if (!s || s->closing) {
        status = IPC_NOT_FOUND;
        text = "no such stream";
    } else if (fd < 0) {
        text = "POOL needs exactly one file descriptor";
    } else if (s->memory[p.pool]) {
        text = "the pool's number is in use";
    } else {
        status = ipc_memory_map(fd, p.bytes, &c->memory_bytes, FRONT_MEMORY_MAX, &text,
                                &s->memory[p.pool]);
    }
    answer.status = (uint16_t)status;
    answer.frame = p.pool;
    front_send(c, answer, NULL, 0, text, strlen(text));
}
