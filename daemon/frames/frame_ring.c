/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/frame_ring.h"

#include "base.h"
#include "daemon/frames/answer_trace.h"

static struct dmn_record *to_ring(struct dmn_stream *s)
{
    struct dmn_record *r = s->free;

    s->free = r->next_free;
    dmn_record_reset(r);
    s->ring[s->tail++ & DMN_RING_MASK] = r;
    return r;
}

/* Return: where frames go instead of the pipeline; NULL: nowhere, or no picture can be converted.
 */
static const struct dmn_elsewhere *takes_tensors(const struct dmn_stream *s)
{
    const struct dmn_elsewhere *e = s->clients->model->elsewhere;

    return e && s->peer->frames->slicer.running && e->depth(e) > 0 ? e : NULL;
}

struct dmn_record *dmn_stream_take(struct dmn_stream *s, const struct ipc_header *h,
                                   const uint8_t *payload, size_t *ret_inline)
{
    struct dmn_record *r = to_ring(s);
    struct ipc_frame f;

    *ret_inline = 0;
    dmn_stream_use_until(&s->use, &s->flow, r->arrival_ns);
    if (!ipc_frame_take(&s->flow, &r->answer, h, payload, &f)) {
        dmn_record_refused(r, r->answer.status == IPC_RESOURCE_EXHAUSTED ? DMN_NO_RESULT_CREDIT
                                                                         : DMN_NO_RESULT_INVALID);
        return r;
    }
    dmn_stream_use_frame(&s->use, &s->flow, s->peer->fd);
    if (s->peer->frames->draining || !s->clients || s->clients->model->leaving) {
        dmn_record_fail(r, s->peer->frames->draining ? DMN_NO_RESULT_STOPPING
                                                     : DMN_NO_RESULT_UNLOADED);
        return r;
    }
    r->deadline_ns = ipc_frame_deadline(&s->flow, &f, r->arrival_ns);
    r->goes_to = takes_tensors(s);
    r->others = s->format.pixfmt != IPC_PIX_TENSOR && s->peer->frames->slicer.running &&
                dmn_admission_others(&s->clients->admission, &s->queue);
    if (r->answer.is_inline) {
        *ret_inline = dmn_record_place_inline(r, &s->format, h, &f, s->peer);
    } else {
        dmn_record_place_shared(r, &s->format, &f, s->memory[f.pool], s->peer);
    }
    s->width = r->image.width;
    s->height = r->image.height;
    return r;
}

void dmn_stream_cancel(struct dmn_stream *s, uint64_t frame)
{
    for (uint32_t i = s->head; i != s->tail; i++) {
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

bool dmn_stream_answer(struct dmn_stream *s)
{
    bool any = false;

    while (s->head != s->tail && !dmn_peer_backlogged(s->peer)) {
        struct dmn_record *r = s->ring[s->head & DMN_RING_MASK];
        struct ipc_reply reply;

        if (r->state != DMN_RECORD_DONE) {
            break;
        }
        if (s->next == s->head) {
            s->next++;
        }
        s->head++;
        if (r->answer.status == IPC_OK) {
            dmn_stream_describe(s, r->described);
        }
        r->answer.depth = s->clients ? (uint32_t)dmn_model_depth(s->clients->model) : 0;
        ipc_answer_reply(&r->answer, s->id, r->output_there, s->format.output.there_bytes, &reply);
        dmn_peer_reply(s->peer, &reply);
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
        dmn_stream_use_until(&s->use, &s->flow, base_now_ns());
        if (__builtin_expect(s->peer->frames->trace.ring != NULL, 0)) {
            dmn_trace_answered(s, r);
        }
        s->flow.unanswered -= r->answer.has_credit;
        dmn_record_release(r);
        r->next_free = s->free;
        s->free = r;
        any = true;
    }
    return any;
}
