/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon does with the messages of clients: OPEN, a stream on a model; POOL, client memory
 * for its frames; and frames, which it takes, cancels and answers. */
#include <endian.h>

#include "daemon/config/config.h"
#include "daemon/frames/stream.h"
#include "daemon/service/log.h"

static struct ipc_tensor describe(const struct mdl_model *m, const struct mdl_io *io,
                                  const struct dmn_travel *travel, size_t i)
{
    const struct mdl_tensor *t = &m->tensors[io->tensor];
    struct ipc_tensor w = {.dtype = travel->tensor[i].f16 ? IPC_F16 : dmn_piped_dtype(t->dtype),
                           .rank = (uint32_t)t->rank,
                           .offset = travel->tensor[i].there,
                           .bytes = dmn_travel_bytes(travel, i),
                           .rows_output = (uint32_t)io->rows_output,
                           .rows_dim = (uint32_t)io->rows_dim};

    ipc_name_set(w.name, io->name);
    for (size_t k = 0; k < t->rank && k < IPC_RANK_MAX; k++) {
        w.dim[k] = (uint32_t)t->dim[k];
    }
    return w;
}

static void refuse(struct dmn_peer *p, const struct ipc_header *h, enum ipc_status status,
                   const char *text)
{
    struct ipc_reply reply;

    p->frames->streams_refused[status]++;
    dmn_peer_refused(p, DMN_REFUSED_STREAM, status, text);
    ipc_open_refusal(h, status, text, &reply);
    ipc_conn_reply(&p->base, &reply);
}

static void accept_open(struct dmn_stream *s)
{
    const struct dmn_travel *in = &s->format.input, *out = &s->format.output;
    const struct dmn_model *m = s->clients->model;
    struct ipc_opened o = {.credits = s->base.flow.credits,
                           .depth = (uint32_t)dmn_model_depth(m),
                           .input_count = (uint32_t)in->count,
                           .output_count = (uint32_t)out->count,
                           .input_bytes = in->there_bytes,
                           .output_bytes = out->there_bytes,
                           .image_width = m->image_width,
                           .image_height = m->image_height};
    struct ipc_tensor tensors[2 * IPC_TENSORS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < in->count; i++) {
        tensors[count++] = describe(m->model, &m->model->inputs[i], in, i);
    }
    for (size_t i = 0; i < out->count; i++) {
        tensors[count++] = describe(m->model, &m->model->outputs[i], out, i);
    }
    ipc_conn_send(&s->peer->base, (struct ipc_header){.type = IPC_OPENED, .stream = s->base.id}, &o,
                  sizeof(o), tensors, count * sizeof(*tensors));
}

static bool has_f32(const struct mdl_model *m, const struct mdl_io *ios, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (m->tensors[ios[i].tensor].dtype == MDL_F32) {
            return true;
        }
    }
    return false;
}

/* Return: what the model cannot do; NULL: it can do all that is asked. */
static const char *unsupported(const struct dmn_model *m, const struct ipc_open *o)
{
    const struct mdl_model *net = m->model;

    if (o->pixfmt != IPC_PIX_TENSOR && !m->image_width) {
        return "its input is not an image; send tensors (pixfmt 0)";
    }
    if (o->input_dtype == IPC_F16 && !has_f32(net, net->inputs, net->input_count)) {
        return "it has no f32 input, so none can be sent as f16";
    }
    if (o->output_dtype == IPC_F16 && !has_f32(net, net->outputs, net->output_count)) {
        return "it has no f32 output, so none can be returned as f16";
    }
    return NULL;
}

static void open_stream(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload)
{
    struct dmn_peer *p = dmn_peer_of(c);
    const struct dmn_frames *f = p->frames;
    size_t limit = (size_t)dmn_config_int(*f->config, DMN_KEY_LIMIT_STREAMS);
    const struct ipc_open_place place = {.in_use = ipc_conn_stream(c, h->stream) != NULL,
                                         .unavailable =
                                             f->draining ? "the daemon is stopping" : NULL,
                                         .streams = c->stream_count,
                                         .streams_max = base_min(limit, (size_t)IPC_STREAMS_MAX),
                                         .features = c->features};
    const char *why = "";
    enum ipc_status status;
    struct dmn_stream *s;
    struct dmn_model *m;
    struct ipc_open o;

    status = ipc_open_check(h, payload, &place, &o, &why);
    if (status != IPC_OK) {
        refuse(p, h, status, why);
        return;
    }
    m = o.model[0] ? dmn_model_find(f->models, o.model) : dmn_model_default(f->models);
    if (!m) {
        char text[DMN_MODEL_MISSING_BYTES];

        refuse(p, h, IPC_NOT_FOUND, dmn_model_missing(f->models, o.model, text, sizeof(text)));
        return;
    }
    why = unsupported(m, &o);
    if (why) { /* the client may have named none */
        char text[IPC_NAME_BYTES + 80];

        snprintf(text, sizeof(text), "model %s: %s", m->name, why);
        refuse(p, h, IPC_UNSUPPORTED, text);
        return;
    }
    s = dmn_stream_new(p, m->clients, h->stream, &o);
    if (!s) {
        refuse(p, h, IPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    c->streams[c->stream_count++] = &s->base;
    dmn_stream_describe(s, m->clients->description);
    accept_open(s);
}

static void open_memory(struct ipc_conn *c, const struct ipc_header *h, const uint8_t *payload,
                        int fd)
{
    const struct dmn_peer *p = dmn_peer_of(c);
    struct ipc_stream *s = ipc_conn_stream(c, h->stream);
    size_t mib = (size_t)dmn_config_int(*p->frames->config, DMN_KEY_LIMIT_POOL_MIB);
    char over[160];
    struct ipc_pool wanted = {0};
    const struct ipc_pool_place place = {.memory = s && !s->closing ? s->memory : NULL,
                                         .total = &p->account->memory_bytes,
                                         .total_max = mib << 20,
                                         .over = over};
    struct ipc_reply reply;

    (void)ipc_get_pool(payload, IPC_POOL_BYTES, &wanted); /* ipc_pool_take() refuses a bad one */
    snprintf(over, sizeof(over),
             "no room for this pool of %.1f MiB: user %u has %.1f MiB, and "
             "limits.pool_mib_per_user is %zu",
             (double)wanted.bytes / (1 << 20), (unsigned)p->account->uid,
             (double)p->account->memory_bytes / (1 << 20), mib);
    ipc_pool_take(h, payload, fd, &place, &reply);
    if (reply.h.status != IPC_OK) {
        char why[DMN_REFUSAL_TEXT];

        snprintf(why, sizeof(why), "%.*s", (int)reply.tail_bytes, (const char *)reply.tail);
        p->frames->pools_refused[reply.h.status]++;
        dmn_log_limited(
            LOG_WARNING,
            ((struct dmn_log_fields){.id = DMN_MSG_CLIENT_REFUSED, .client = c->client}),
            "refused memory of client \"%s\" (pid %d, user %u): %s", c->client, (int)p->pid,
            (unsigned)p->account->uid, why);
        dmn_peer_refused(p, DMN_REFUSED_POOL, (enum ipc_status)reply.h.status, why);
    }
    ipc_conn_reply(c, &reply);
}

/* ---- frames enter a ring at its tail and are answered at its head ---- */

static struct dmn_record *to_ring(struct dmn_stream *s)
{
    struct dmn_record *r = s->free;

    s->free = r->next_free;
    dmn_record_reset(r);
    s->ring[s->base.tail++ & DMN_RING_MASK] = r;
    return r;
}

/* Return: where frames go instead of the pipeline; NULL: nowhere, or no picture can be converted.
 */
static const struct dmn_elsewhere *takes_tensors(const struct dmn_stream *s)
{
    const struct dmn_elsewhere *e = s->clients->model->elsewhere;

    return e && s->peer->frames->preparing.running && e->depth(e) > 0 ? e : NULL;
}

/* Return: the stream can take one more frame, with or without credit. */
static bool room(const struct ipc_conn *c, const struct ipc_stream *stream)
{
    const struct dmn_stream *s = dmn_stream_of(stream);

    return s->free != NULL && stream->tail - stream->head < DMN_RING_SIZE;
}

/* Takes a FRAME or INLINE whose header and fixed part have arrived. Allocates only when an inline
 * frame is larger than those before it. The record is at the ring's end. Return: it, READING, to be
 * passed to dmn_prepare_frame() once all its bytes have arrived; NULL: it is DONE, because it is
 * refused. */
static void *take(struct ipc_stream *stream, const struct ipc_header *h, const uint8_t *payload,
                  uint8_t **ret_to)
{
    struct dmn_stream *s = dmn_stream_of(stream);
    struct dmn_record *r = to_ring(s);
    struct ipc_frame f;

    dmn_stream_use_until(&s->use, &s->base.flow, r->arrival_ns);
    if (!ipc_frame_take(&s->base.flow, &r->answer, h, payload, &f)) {
        dmn_record_refused(r, r->answer.status == IPC_RESOURCE_EXHAUSTED ? DMN_NO_RESULT_CREDIT
                                                                         : DMN_NO_RESULT_INVALID);
        return NULL;
    }
    dmn_stream_use_frame(&s->use, &s->base.flow, s->peer->base.fd);
    if (s->peer->frames->draining || !s->clients || s->clients->model->leaving) {
        dmn_record_fail(r, s->peer->frames->draining ? DMN_NO_RESULT_STOPPING
                                                     : DMN_NO_RESULT_UNLOADED);
        return NULL;
    }
    r->deadline_ns = ipc_frame_deadline(&s->base.flow, &f, r->arrival_ns);
    r->goes_to = takes_tensors(s);
    r->others = s->format.pixfmt != IPC_PIX_TENSOR && s->peer->frames->preparing.running &&
                dmn_admission_others(&s->clients->admission, &s->queue);
    if (dmn_record_place(r, &s->format, h, &f, r->answer.is_inline ? NULL : s->base.memory[f.pool],
                         s->peer) > 0) {
        *ret_to = r->buffer;
    }
    s->width = r->image.width;
    s->height = r->image.height;
    return r->state == DMN_RECORD_READING ? r : NULL;
}

/* Cancels a frame if it is not answered yet: a waiting one becomes DONE, a running one ends before
 * its next stage. */
static void cancel(struct ipc_stream *stream, uint64_t frame)
{
    struct dmn_stream *s = dmn_stream_of(stream);

    for (uint32_t i = s->base.head; i != s->base.tail; i++) {
        struct dmn_record *r = s->ring[i & DMN_RING_MASK];

        if (r->answer.frame != frame || r->state == DMN_RECORD_DONE) {
            continue;
        }
        if (r->state == DMN_RECORD_QUEUED) {
            dmn_stream_unqueue(r, DMN_NO_RESULT_CANCELLED);
        } else if (r->state == DMN_RECORD_RUNNING) {
            dmn_record_cancel(r);
        } else if (r->state == DMN_RECORD_PREPARING) {
            r->give_up = DMN_NO_RESULT_CANCELLED;
        }
        return;
    }
}

/* Return: the trace knows it. */
static bool trace_stream(struct dmn_stream *s)
{
    struct dmn_frames_trace *t = &s->peer->frames->trace;
    uint32_t name[sizeof(s->peer->base.client) / sizeof(uint32_t) + 1] = {0};
    size_t words = strlen(s->peer->base.client) / sizeof(uint32_t) + 1;

    if (s->trace_session == t->session) {
        return true;
    }
    if (!pl_trace_begin(t->ring, TRACE_STREAM, (uint32_t)(TRACE_STREAM_NAME + words))) {
        return false;
    }
    memcpy(name, s->peer->base.client, strlen(s->peer->base.client));
    s->trace_session = t->session;
    s->trace_track = ++t->streams;
    pl_trace_put(t->ring, s->trace_track);
    pl_trace_put(t->ring, s->base.id);
    pl_trace_put(t->ring, (uint32_t)s->peer->pid);
    for (size_t i = 0; i < words; i++) {
        pl_trace_put(t->ring, le32toh(name[i]));
    }
    pl_trace_end(t->ring);
    return true;
}

/* Records the answer of @r, if a trace is on; describes its stream first if this trace does not
 * know it. */
static void trace_answer(struct dmn_stream *s, const struct dmn_record *r)
{
    struct pl_trace_ring *ring = s->peer->frames->trace.ring;

    if (!ring || !trace_stream(s) || !pl_trace_begin(ring, TRACE_ANSWER, TRACE_ANSWER_WORDS)) {
        return;
    }
    pl_trace_put(ring, s->trace_track);
    pl_trace_put(ring, r->answer.status);
    pl_trace_put(ring, r->traced.pipeline);
    pl_trace_put(ring, r->traced.pipeline ? r->answer.epoch : 0);
    pl_trace_put64(ring, r->answer.frame);
    pl_trace_put64(ring, r->traced.number);
    pl_trace_put64(ring, r->arrival_ns);
    pl_trace_put64(ring, r->traced.admitted_ns);
    pl_trace_put64(ring, r->traced.done_ns);
    pl_trace_put64(ring, base_now_ns());
    pl_trace_end(ring);
}

/* Answers DONE records at the ring's head, until the client has too much to read. Records go back
 * to the free list. Return: something was answered. */
static bool answer(struct ipc_stream *stream)
{
    struct dmn_stream *s = dmn_stream_of(stream);
    bool any = false;

    while (s->base.head != s->base.tail && !ipc_conn_backlogged(&s->peer->base)) {
        struct dmn_record *r = s->ring[s->base.head & DMN_RING_MASK];
        struct ipc_reply reply;

        if (r->state != DMN_RECORD_DONE) {
            break;
        }
        if (s->next == s->base.head) {
            s->next++;
        }
        s->base.head++;
        if (r->answer.status == IPC_OK) {
            dmn_stream_describe(s, r->described);
        }
        r->answer.depth = s->clients ? (uint32_t)dmn_model_depth(s->clients->model) : 0;
        ipc_answer_reply(&r->answer, s->base.id, r->output_there, s->format.output.there_bytes,
                         &reply);
        ipc_conn_reply(&s->peer->base, &reply);
        s->peer->answered++;
        if (s->clients) {
            dmn_clients_count(s->clients,
                              &(struct dmn_frame_end){.status = r->answer.status,
                                                      .policy = s->policy,
                                                      .why = r->why,
                                                      .arrival_ns = r->arrival_ns,
                                                      .done_ns = r->answer.done_ns,
                                                      .queue_ns = r->answer.queue_ns,
                                                      .compute_ns = r->answer.service_ns,
                                                      .prepare_ns = r->prepare_ns});
        }
        if (r->answer.status != IPC_OK && r->answer.status != IPC_CANCELLED) {
            dmn_peer_refused(s->peer, DMN_REFUSED_FRAME, r->answer.status, r->answer.text);
        }
        dmn_stream_use_until(&s->use, &s->base.flow, base_now_ns());
        if (__builtin_expect(s->peer->frames->trace.ring != NULL, 0)) {
            trace_answer(s, r);
        }
        s->base.flow.unanswered -= r->answer.has_credit;
        dmn_record_release(r);
        r->next_free = s->free;
        s->free = r;
        any = true;
    }
    return any;
}

/* ---- */

static void welcome(const struct ipc_conn *c, struct ipc_welcome *ret)
{
    const struct dmn_config *config = *dmn_peer_of(c)->frames->config;

    ret->features = IPC_FEATURE_F16 | IPC_FEATURE_DESCRIBED;
    ret->streams_max = (uint32_t)dmn_config_int(config, DMN_KEY_LIMIT_STREAMS);
    ret->pool_bytes_max = IPC_POOL_BYTES_MAX;
    snprintf(ret->server, sizeof(ret->server), "piped " PIPED_VERSION);
}

static void greeted(struct ipc_conn *c)
{
    if (dmn_peer_of(c)->frames->draining) { /* it greeted too late for dmn_frames_drain_begin() */
        ipc_conn_event(c, 0, IPC_EVENT_DRAINING, 0);
    }
}

static void frame(void *record)
{
    dmn_prepare_frame(record);
}

static void finished(struct ipc_stream *s)
{
    dmn_stream_free(dmn_stream_of(s));
}

static bool over(const struct ipc_conn *c)
{
    return dmn_loop_over(dmn_peer_of(c)->frames->turns);
}

const struct ipc_server_ops dmn_handlers = {.welcome = welcome,
                                            .greeted = greeted,
                                            .open = open_stream,
                                            .memory = open_memory,
                                            .room = room,
                                            .take = take,
                                            .frame = frame,
                                            .cancel = cancel,
                                            .answer = answer,
                                            .finished = finished,
                                            .orphaned = dmn_stream_orphan,
                                            .backlog_max = dmn_peer_backlog_max,
                                            .failed = dmn_peer_failed,
                                            .over = over};
