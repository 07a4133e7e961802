/* SPDX-License-Identifier: Apache-2.0 */
/* Which frame goes into a model's pipeline, and when. A complete frame waits in its stream's ring.
 * When the pipeline may have room, waiting frames go in, in the order of admission.h. A frame that
 * comes back is DONE, and its connection is marked; the last one of a stream without a connection
 * frees the stream. */
#include "daemon/frames/stream.h"

/* The frame came back from where it was computed: from the pipeline, or from elsewhere. */
static void ended(struct dmn_record *r, struct dmn_model *m, enum pl_frame_status status)
{
    struct dmn_stream *s = r->stream;

    switch (status) {
    case PL_FRAME_OK:
        if (ipc_memory_lost(r->memory)) {
            dmn_record_fail(r, DMN_NO_RESULT_POOL_LOST);
            break;
        }
        if (s->format.output.converts) {
            dmn_travel_out(&s->format.output, r->output, r->output_there);
        }
        dmn_record_turn(r, DMN_RECORD_DONE);
        if (r->answer.service_ns > 0) {
            dmn_client_stats_served(&m->clients->stats, r->answer.service_ns);
        }
        break;
    case PL_FRAME_EXPIRED:
        dmn_record_fail(r, DMN_NO_RESULT_LATE_COMPUTING);
        break;
    case PL_FRAME_CANCELLED:
        dmn_record_fail(r, DMN_NO_RESULT_CANCELLED);
        break;
    }
    dmn_stream_returned(s);
}

static void collected(struct dmn_frame_owner *owner, struct dmn_model *m, struct pl_frame *f)
{
    struct dmn_record *r = base_container_of(owner, struct dmn_record, owner);

    m->running--;
    m->stats.last_ns = f->done_ns;
    m->stats.due += f->due_ns > 0;
    m->stats.late += f->due_ns > 0 && f->done_ns > f->due_ns;
    if (r->stream->clients) { /* not @m after a hot swap */
        r->stream->clients->model->stats.here += f->status == PL_FRAME_OK;
    }
    r->running = NULL;
    r->answer.epoch = f->epoch;
    r->answer.done_ns = f->done_ns;
    r->traced.pipeline = pl_trace_id(m->pipe);
    r->traced.number = f->number;
    r->traced.admitted_ns = f->admitted_ns;
    r->traced.done_ns = f->done_ns;
    r->answer.queue_ns = f->started_ns > r->arrival_ns ? f->started_ns - r->arrival_ns : 0;
    r->answer.service_ns =
        f->done_ns > f->started_ns && f->started_ns ? f->done_ns - f->started_ns : 0;
    m->clients->stats.image_ns += f->image_ns;
    if (r->stream->clients && r->stream->queue.share) {
        dmn_admission_measured(&r->stream->clients->admission, &r->stream->queue, r->cost_ns,
                               f->busy_ns);
    }
    ended(r, m, f->status);
}

/* A frame came back from elsewhere. Undone, it waits for the pipeline again. */
static void came_back(struct dmn_far_frame *f, struct dmn_model *m, const struct dmn_far_answer *a)
{
    struct dmn_record *r = base_container_of(f, struct dmn_record, far);
    struct dmn_stream *s = r->stream;
    uint64_t taken = a->done_ns - base_min(a->done_ns, r->arrival_ns);

    m->running--;
    if (a->undone && s->peer && s->clients) {
        s->running--;
        r->here = true;
        dmn_stream_wait(r);
        if (s->clients->model != m) { /* a hot swap moved the stream: nobody tells of room there */
            dmn_submit_waiting(s->clients);
        }
        return;
    }
    m->stats.last_ns = r->answer.done_ns = a->done_ns;
    r->answer.epoch = a->epoch;
    r->answer.service_ns = base_min(a->service_ns, taken);
    r->answer.queue_ns = taken - r->answer.service_ns;
    ended(r, m, a->undone ? PL_FRAME_CANCELLED : a->status);
}

/* Its input is still an image. What was prepared for a model that a hot swap replaced may be of no
 * use here. */
static bool is_image(const struct dmn_record *r, const struct dmn_model *m)
{
    return r->stream->format.pixfmt != IPC_PIX_TENSOR &&
           !(r->prepared &&
             memcmp(&r->prepared_by, &m->model->preproc, sizeof(r->prepared_by)) == 0);
}

static void fill(struct pl_frame *f, const struct dmn_model *m, struct dmn_record *r)
{
    const struct dmn_frame_format *format = &r->stream->format;

    r->owner.collected = collected;
    f->owner = &r->owner;
    f->tag = r->answer.frame;
    f->came_ns = r->arrival_ns;
    f->deadline_ns = r->deadline_ns;
    f->has_image = is_image(r, m);
    f->image = r->image;
    for (size_t i = 0; i < format->input.count && !f->has_image; i++) {
        f->inputs[i] = r->input + format->input.tensor[i].here;
    }
    for (size_t i = 0; i < format->output.count; i++) {
        f->outputs[i] = r->output + format->output.tensor[i].here;
    }
}

static bool elsewhere(const struct dmn_model *m)
{
    return m->elsewhere && m->elsewhere->depth(m->elsewhere) > 0;
}

/* Offers a frame elsewhere, a picture as it is if it is taken so; else it was prepared to be a
 * tensor, or is for the pipeline. */
static enum dmn_offer offer(struct dmn_model *m, struct dmn_record *r)
{
    bool image = is_image(r, m);

    if (!m->elsewhere || r->here ||
        (image && !m->elsewhere->takes(m->elsewhere, r->stream->format.pixfmt, &r->image))) {
        return DMN_OFFER_NONE;
    }
    r->far = (struct dmn_far_frame){.input = r->input,
                                    .image = image ? &r->image : NULL,
                                    .pixfmt = image ? r->stream->format.pixfmt : IPC_PIX_TENSOR,
                                    .output = r->output,
                                    .deadline_ns = r->deadline_ns,
                                    .done = came_back};
    return m->elsewhere->offer(m->elsewhere, &r->far);
}

/* Return: 0; PL_E_FULL. */
static int to_pipeline(struct dmn_model *m, struct dmn_record *r)
{
    struct pl_frame *f = pl_frame_get(m->pipe);

    if (!f) {
        return PL_E_FULL;
    }
    fill(f, m, r);
    if (pl_submit(m->pipe, f) != 0) {
        pl_frame_put(m->pipe, f);
        return PL_E_FULL;
    }
    r->running = f;
    return 0;
}

/* Answers a waiting frame, which is not computed. */
static void refuse(struct dmn_record *r, enum dmn_no_result why)
{
    dmn_stream_unqueue(r, why);
    if (r->stream->peer) {
        ipc_conn_mark(&r->stream->peer->base);
    }
}

/* A picture goes to other boards as it is or as a tensor, whichever has fewer bytes. */
static void note_wire(struct dmn_model *m, const struct dmn_record *r)
{
    bool picture = r->stream->format.pixfmt != IPC_PIX_TENSOR && !r->here;
    uint64_t bytes =
        picture ? base_min(krn_image_bytes(&r->image), m->input_bytes) : m->input_bytes;

    m->stats.wire_bytes = m->stats.wire_bytes ? (7 * m->stats.wire_bytes + bytes) / 8 : bytes;
}

/* Submits the stream's oldest waiting frame, or answers it. Return: false: there is no room. */
static bool submit(struct dmn_clients *w, struct dmn_stream *s)
{
    struct dmn_model *m = w->model;
    enum dmn_offer offered;
    struct dmn_record *r;

    while (s->ring[s->next & DMN_RING_MASK]->state != DMN_RECORD_QUEUED) {
        s->next++; /* the queue counts it, so it exists */
    }
    r = s->ring[s->next & DMN_RING_MASK];
    if (r->deadline_ns && base_now_ns() >= r->deadline_ns) {
        refuse(r, DMN_NO_RESULT_LATE_WAITING);
        return true;
    }
    if (r->converted) { /* all its bytes are here; once */
        dmn_travel_in(&s->format.input, r->input_there, r->converted);
        r->converted = NULL;
    }
    offered = offer(m, r);
    if (offered == DMN_OFFER_NONE && pl_asleep(m->pipe)) {
        refuse(r, DMN_NO_RESULT_TOO_LARGE);
        return true;
    }
    if (offered == DMN_OFFER_FULL || (offered == DMN_OFFER_NONE && to_pipeline(m, r) != 0)) {
        return false;
    }
    r->cost_ns = dmn_admission_taken(&w->admission, &s->queue);
    dmn_record_turn(r, DMN_RECORD_RUNNING);
    ipc_description_hold(&r->described, w->description);
    s->running++;
    m->running++;
    m->stats.admitted += !r->admitted; /* else it came back from elsewhere */
    r->admitted = true;
    note_wire(m, r);
    return true;
}

void dmn_submit_waiting(struct dmn_clients *w)
{
    struct dmn_queue *q;

    while ((q = dmn_admission_next(&w->admission)) != NULL) {
        if (!submit(w, base_container_of(q, struct dmn_stream, queue))) {
            break;
        }
    }
}

/* Policy "latest": frames that wait give way to the newer one. That one is queued first: a queue
 * that became empty would lose its turn with every new frame. */
static void drop_older(struct dmn_stream *s, const struct dmn_record *newer)
{
    for (uint32_t i = s->next; i != s->base.tail && s->ring[i & DMN_RING_MASK] != newer; i++) {
        struct dmn_record *r = s->ring[i & DMN_RING_MASK];

        if (r->state == DMN_RECORD_PREPARING) {
            r->give_up = DMN_NO_RESULT_NEWER;
        } else if (r->state == DMN_RECORD_QUEUED && !r->here) {
            dmn_stream_unqueue(r, DMN_NO_RESULT_NEWER);
        }
    }
}

void dmn_submit_frame(struct dmn_record *r)
{
    struct dmn_stream *s = r->stream;
    struct dmn_clients *w = s->clients;
    size_t own, ahead;

    if (!w || w->model->leaving) {
        dmn_record_fail(r, DMN_NO_RESULT_UNLOADED);
        return;
    }
    /* of policy "latest", those give way to this one */
    own = s->policy == IPC_POLICY_LATEST ? 0 : s->queue.flow.waiting;
    ahead = r->deadline_ns
                ? pl_in_flight(w->model->pipe) + dmn_admission_ahead(&w->admission, &s->queue, own)
                : 0;
    /* the period is the pipeline's; elsewhere has another one */
    if (dmn_admission_misses_deadline(r->deadline_ns, base_now_ns(), ahead,
                                      elsewhere(w->model) ? 0 : w->model->period_ns,
                                      (uint64_t)w->stats.service_ewma_ns)) {
        dmn_record_fail(r, DMN_NO_RESULT_LATE_ARRIVED);
        return;
    }
    if (r->prepared) {
        dmn_stream_wait(r);
    } else {
        dmn_record_turn(r, DMN_RECORD_QUEUED);
        dmn_admission_add(&w->admission, &s->queue);
    }
    if (s->policy == IPC_POLICY_LATEST) {
        drop_older(s, r);
    }
    dmn_submit_waiting(w);
    /* without this, streams that wait would take every place before one that does not */
    if (r->state == DMN_RECORD_QUEUED && s->policy == IPC_POLICY_REJECT &&
        (s->queue.flow.waiting > 1 || !dmn_admission_has_turn(&w->admission, &s->queue))) {
        dmn_stream_unqueue(r, DMN_NO_RESULT_FULL);
    }
}
