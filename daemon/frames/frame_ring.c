/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/frame_ring.h"

#include <endian.h>

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

bool dmn_ring_room(const struct ipc_conn *c, const struct ipc_stream *stream)
{
    const struct dmn_stream *s = dmn_stream_of(stream);

    return s->free != NULL && stream->tail - stream->head < DMN_RING_SIZE;
}

void *dmn_ring_take(struct ipc_stream *stream, const struct ipc_header *h, const uint8_t *payload,
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

void dmn_ring_cancel(struct ipc_stream *stream, uint64_t frame)
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
static bool describe(struct dmn_stream *s)
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

    if (!ring || !describe(s) || !pl_trace_begin(ring, TRACE_ANSWER, TRACE_ANSWER_WORDS)) {
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

bool dmn_ring_answer(struct ipc_stream *stream)
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
