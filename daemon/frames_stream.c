/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"

#define RING_MASK (DMN_RING_SIZE - 1)

static void link_stream(struct dmn_model *m, struct dmn_stream *s)
{
    s->model = m;
    s->model_prev = NULL;
    s->model_next = m->streams;
    if (m->streams) {
        m->streams->model_prev = s;
    }
    m->streams = s;
}

static void unlink_stream(struct dmn_stream *s)
{
    if (!s->model) {
        return;
    }
    if (s->model_prev) {
        s->model_prev->model_next = s->model_next;
    } else {
        s->model->streams = s->model_next;
    }
    if (s->model_next) {
        s->model_next->model_prev = s->model_prev;
    }
    s->model = NULL;
}

/* Records for so many more frames. Return: false without memory. */
static bool grow_records(struct dmn_stream *s, size_t count)
{
    while (count-- > 0) {
        struct dmn_record *r = calloc(1, sizeof(*r));

        if (!r) {
            return false;
        }
        r->stream = s;
        r->next_free = s->free;
        s->free = r;
    }
    return true;
}

static void free_record(struct dmn_record *r)
{
    dmn_record_release(r);
    free(r->buffer);
    free(r);
}

void dmn_stream_free(struct dmn_stream *s)
{
    unlink_stream(s);
    while (s->free) {
        struct dmn_record *r = s->free;

        s->free = r->next_free;
        free_record(r);
    }
    for (; s->head != s->tail; s->head++) {
        free_record(s->ring[s->head & RING_MASK]);
    }
    for (size_t i = 0; i < IPC_POOLS_MAX; i++) {
        s->pools[i] = dmn_pool_unref(s->pools[i]);
    }
    free(s);
}

static enum ipc_dtype wire_dtype(enum mdl_dtype t)
{
    static const enum ipc_dtype map[MDL_DTYPE_COUNT] = {
        [MDL_F32] = IPC_F32, [MDL_I32] = IPC_I32, [MDL_I64] = IPC_I64,
        [MDL_U8] = IPC_U8,   [MDL_I8] = IPC_I8,   [MDL_BOOL] = IPC_BOOL,
    };

    return map[t];
}

static void describe(const struct mdl_model *m, const struct mdl_io *io, size_t offset,
                     uint8_t *ret)
{
    const struct mdl_tensor *t = &m->tensors[io->tensor];
    struct ipc_tensor w = {.dtype = wire_dtype(t->dtype),
                           .rank = (uint32_t)t->rank,
                           .offset = offset,
                           .bytes = io->bytes};

    snprintf(w.name, sizeof(w.name), "%s", io->name);
    for (size_t i = 0; i < t->rank && i < IPC_RANK_MAX; i++) {
        w.dim[i] = (uint32_t)t->dim[i];
    }
    ipc_put_tensor(&w, ret);
}

static void refuse(struct dmn_conn *c, const struct ipc_header *h, enum ipc_status status,
                   const char *text)
{
    struct ipc_opened m = {0};
    uint8_t payload[IPC_OPENED_BYTES];

    ipc_put_opened(&m, payload);
    dmn_conn_send(c, (struct ipc_header){.type = IPC_OPENED, .stream = h->stream, .status = status},
                  payload, sizeof(payload), text, strlen(text));
}

static void accept_open(struct dmn_stream *s)
{
    const struct dmn_model *m = s->model;
    struct ipc_opened o = {.credits = s->credits,
                           .depth = (uint32_t)pl_depth(m->pipe),
                           .input_count = (uint32_t)s->input_count,
                           .output_count = (uint32_t)s->output_count,
                           .input_bytes = s->input_bytes,
                           .output_bytes = s->output_bytes,
                           .image_width = m->image_width,
                           .image_height = m->image_height};
    uint8_t payload[IPC_OPENED_BYTES], tensors[2 * IPC_TENSORS_MAX * IPC_TENSOR_BYTES];
    size_t bytes = 0;

    ipc_put_opened(&o, payload);
    for (size_t i = 0; i < s->input_count; i++, bytes += IPC_TENSOR_BYTES) {
        describe(m->model, &m->model->inputs[i], s->in_offset[i], tensors + bytes);
    }
    for (size_t i = 0; i < s->output_count; i++, bytes += IPC_TENSOR_BYTES) {
        describe(m->model, &m->model->outputs[i], s->out_offset[i], tensors + bytes);
    }
    dmn_conn_send(s->conn, (struct ipc_header){.type = IPC_OPENED, .stream = s->id}, payload,
                  sizeof(payload), tensors, bytes);
}

static uint32_t grant(const struct dmn_conn *c, uint32_t wanted, size_t depth)
{
    uint32_t limit = (uint32_t)dmn_config_int(c->daemon->config, DMN_KEY_LIMIT_CREDITS);

    /* enough that one full pipeline runs while another is on its way */
    wanted = wanted ? wanted : (uint32_t)base_min(2 * depth, (size_t)IPC_CREDITS_MAX);
    limit = base_min(limit, IPC_CREDITS_MAX);
    wanted = base_min(wanted, limit);
    return base_max(wanted, 1u);
}

static struct dmn_stream *stream_new(struct dmn_conn *c, struct dmn_model *m, uint32_t id,
                                     const struct ipc_open *o)
{
    struct dmn_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        return NULL;
    }
    s->conn = c;
    s->id = id;
    s->pixfmt = (enum ipc_pixfmt)o->pixfmt;
    s->policy = (enum ipc_policy)o->policy;
    if (m->latest && s->policy == IPC_POLICY_BLOCK) {
        s->policy = IPC_POLICY_LATEST;
    }
    s->auto_credits = o->credits == 0;
    s->credits = grant(c, o->credits, pl_depth(m->pipe));
    s->deadline_ns = o->deadline_ns;
    dmn_queue_init(&s->queue, o->priority);
    s->input_bytes = m->input_bytes;
    s->output_bytes = m->output_bytes;
    s->input_count = m->model->input_count;
    s->output_count = m->model->output_count;
    memcpy(s->in_offset, m->in_offset, sizeof(s->in_offset));
    memcpy(s->out_offset, m->out_offset, sizeof(s->out_offset));
    link_stream(m, s);
    if (!grow_records(s, s->credits + DMN_SPARE_RECORDS)) {
        dmn_stream_free(s);
        return NULL;
    }
    return s;
}

void dmn_stream_open(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct dmn_daemon *d = c->daemon;
    size_t limit = (size_t)dmn_config_int(d->config, DMN_KEY_LIMIT_STREAMS);
    struct dmn_stream *s;
    struct dmn_model *m;
    struct ipc_open o;

    if (ipc_get_open(payload, IPC_OPEN_BYTES, &o) != 0 || h->stream == 0) {
        refuse(c, h, IPC_INVALID_ARGUMENT, "a field of OPEN is out of range");
        return;
    }
    if (dmn_conn_stream(c, h->stream)) {
        refuse(c, h, IPC_INVALID_ARGUMENT, "the stream's number is in use");
        return;
    }
    if (d->draining) {
        refuse(c, h, IPC_UNAVAILABLE, "the daemon is going down");
        return;
    }
    if (c->stream_count >= base_min(limit, (size_t)IPC_STREAMS_MAX)) {
        refuse(c, h, IPC_RESOURCE_EXHAUSTED, "too many streams on this connection");
        return;
    }
    m = o.model[0] ? dmn_model_find(d, o.model) : dmn_model_default(d);
    if (!m) {
        char text[IPC_NAME_BYTES + 32];

        snprintf(text, sizeof(text), o.model[0] ? "no such model: %s" : "no model is loaded",
                 o.model);
        refuse(c, h, IPC_NOT_FOUND, text);
        return;
    }
    if (o.pixfmt != IPC_PIX_TENSOR && !m->image_width) {
        refuse(c, h, IPC_UNSUPPORTED, "the model's input is no image; send tensors (pixfmt 0)");
        return;
    }
    s = stream_new(c, m, h->stream, &o);
    if (!s) {
        refuse(c, h, IPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    c->streams[c->stream_count++] = s;
    accept_open(s);
}

void dmn_stream_pool(struct dmn_conn *c, const struct ipc_header *h, const uint8_t *payload, int fd)
{
    size_t limit = (size_t)dmn_config_int(c->daemon->config, DMN_KEY_LIMIT_POOL_MIB) << 20;
    struct ipc_header answer = {.type = IPC_POOLED, .stream = h->stream};
    struct dmn_stream *s = dmn_conn_stream(c, h->stream);
    const char *text = "";
    struct ipc_pool p = {0};

    if (ipc_get_pool(payload, IPC_POOL_BYTES, &p) != 0) {
        answer.status = IPC_INVALID_ARGUMENT;
        text = "a field of POOL is out of range";
    } else if (!s || s->closing) {
        answer.status = IPC_NOT_FOUND;
        text = "no such stream";
    } else if (fd < 0) {
        answer.status = IPC_INVALID_ARGUMENT;
        text = "POOL comes with exactly one file descriptor";
    } else if (s->pools[p.pool]) {
        answer.status = IPC_INVALID_ARGUMENT;
        text = "the pool's number is in use";
    } else {
        answer.status =
            (uint16_t)dmn_pool_new(fd, p.bytes, c->account, limit, &text, &s->pools[p.pool]);
    }
    answer.frame = p.pool;
    dmn_conn_send(c, answer, NULL, 0, text, strlen(text));
}

static void close_if_done(struct dmn_stream *s)
{
    struct dmn_conn *c = s->conn;

    if (!s->closing || s->head != s->tail) {
        return;
    }
    for (size_t i = 0; i < c->stream_count; i++) {
        if (c->streams[i] == s) {
            c->streams[i] = c->streams[--c->stream_count];
        }
    }
    for (struct dmn_record *r = s->free; r; r = r->next_free) {
        c->inline_bytes -= r->buffer_bytes;
    }
    dmn_conn_send(c, (struct ipc_header){.type = IPC_CLOSED, .stream = s->id}, NULL, 0, NULL, 0);
    dmn_stream_free(s);
}

void dmn_stream_close(struct dmn_conn *c, const struct ipc_header *h)
{
    struct dmn_stream *s = dmn_conn_stream(c, h->stream);

    if (!s) {
        dmn_conn_send(
            c,
            (struct ipc_header){.type = IPC_CLOSED, .stream = h->stream, .status = IPC_NOT_FOUND},
            NULL, 0, NULL, 0);
        return;
    }
    s->closing = true;
    close_if_done(s);
}

/* The RESULT of the ring's head. */
static void answer(struct dmn_stream *s, struct dmn_record *r)
{
    struct ipc_header h = {.type = IPC_RESULT,
                           .stream = s->id,
                           .status = (uint16_t)r->status,
                           .frame = r->frame,
                           .time_ns = r->time_ns};
    struct ipc_result m = {.queue_ns = r->queue_ns,
                           .service_ns = r->service_ns,
                           .done_ns = r->done_ns,
                           .credits = r->has_credit,
                           .epoch = r->epoch};
    uint8_t payload[IPC_RESULT_BYTES];
    const void *tail = r->text;
    size_t tail_bytes = strlen(r->text);

    if (r->status == IPC_OK) {
        m.out_bytes = s->output_bytes;
        tail = r->is_inline ? r->output : NULL;
        tail_bytes = r->is_inline ? s->output_bytes : 0;
    }
    ipc_put_result(&m, payload);
    dmn_conn_send(s->conn, h, payload, sizeof(payload), tail, tail_bytes);
}

bool dmn_stream_pump(struct dmn_stream *s)
{
    bool any = false;

    while (s->head != s->tail && s->conn && !s->conn->closed && !dmn_conn_backlogged(s->conn)) {
        struct dmn_record *r = s->ring[s->head & RING_MASK];

        if (r->state != DMN_RECORD_DONE) {
            break;
        }
        if (s->next == s->head) {
            s->next++;
        }
        s->head++;
        answer(s, r);
        s->conn->answered++;
        if (s->model) {
            dmn_model_account(s->model, r);
        }
        s->unanswered -= r->has_credit;
        dmn_record_release(r);
        if (s->conn->reading == r) {
            s->conn->reading = NULL;
        }
        r->next_free = s->free;
        s->free = r;
        any = true;
    }
    if (s->conn && !s->conn->closed) {
        close_if_done(s);
    }
    return any;
}

/* Everything that waits is given up; nothing is answered any more. */
static void give_up_waiting(struct dmn_stream *s, enum ipc_status status, const char *text)
{
    for (uint32_t i = s->head; i != s->tail; i++) {
        struct dmn_record *r = s->ring[i & RING_MASK];

        if (r->state == DMN_RECORD_QUEUED) {
            dmn_admission_drop(&s->model->admission, &s->queue);
            dmn_record_fail(r, status, "%s", text);
        } else if (r->state == DMN_RECORD_RUNNING && !s->conn) {
            atomic_store_explicit(&r->running->cancel, true, memory_order_relaxed);
        }
    }
}

void dmn_stream_orphan(struct dmn_stream *s)
{
    s->conn = NULL;
    give_up_waiting(s, IPC_CANCELLED, "");
    if (s->running == 0) {
        dmn_stream_free(s);
    }
}

void dmn_stream_detach(struct dmn_stream *s)
{
    struct dmn_conn *c = s->conn;

    if (!c) {
        dmn_stream_free(s);
        return;
    }
    give_up_waiting(s, IPC_UNAVAILABLE, "the model was unloaded");
    for (uint32_t i = s->head; i != s->tail; i++) { /* only at the end: nobody computes any more */
        struct dmn_record *r = s->ring[i & RING_MASK];

        if (r->state == DMN_RECORD_RUNNING) {
            r->running = NULL;
            s->running--;
            dmn_record_fail(r, IPC_UNAVAILABLE, "the daemon stopped");
        }
    }
    unlink_stream(s);
    dmn_conn_mark(c);
}

void dmn_stream_more_credits(struct dmn_stream *s, size_t depth)
{
    struct ipc_credit m = {0};
    uint8_t payload[IPC_CREDIT_BYTES];
    uint32_t wanted;

    if (!s->conn || !s->auto_credits || s->closing) {
        return;
    }
    wanted = grant(s->conn, 0, depth);
    if (wanted <= s->credits || !grow_records(s, wanted - s->credits)) {
        return;
    }
    m.credits = wanted - s->credits;
    s->credits = wanted;
    ipc_put_credit(&m, payload);
    dmn_conn_send(s->conn, (struct ipc_header){.type = IPC_CREDIT, .stream = s->id}, payload,
                  sizeof(payload), NULL, 0);
}

void dmn_stream_event(struct dmn_stream *s, enum ipc_event event, uint32_t epoch)
{
    struct ipc_event_msg m = {.event = event, .epoch = epoch};
    uint8_t payload[IPC_EVENT_BYTES];

    /* events are news, not answers: a client that does not read them misses them */
    if (!s->conn || s->conn->closed || dmn_conn_backlogged(s->conn)) {
        return;
    }
    ipc_put_event(&m, payload);
    dmn_conn_send(s->conn, (struct ipc_header){.type = IPC_EVENT, .stream = s->id}, payload,
                  sizeof(payload), NULL, 0);
}
