/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/stream.h"

#include "daemon/config/config.h"

static void link_stream(struct dmn_clients *w, struct dmn_stream *s)
{
    s->clients = w;
    LIST_INSERT_HEAD(&w->streams, s, linked);
    if (s->peer) { /* else nothing of it will wait any more */
        dmn_peer_join(s->peer, &w->admission, &s->queue);
    }
}

static void unlink_stream(struct dmn_stream *s)
{
    if (s->clients) {
        LIST_REMOVE(s, linked);
        dmn_queue_leave(&s->queue);
        s->clients = NULL;
    }
}

/* Its model counts what it admitted of frames without an answer, and their answers later. */
static uint64_t admitted(const struct dmn_stream *s)
{
    uint64_t count = 0;

    for (uint32_t i = s->base.head; i != s->base.tail; i++) {
        count += s->ring[i & DMN_RING_MASK]->admitted;
    }
    return count;
}

/* The connection is gone, and with it the answers: its frames count as cancelled. */
static void count_unanswered(struct dmn_stream *s)
{
    for (uint32_t i = s->base.head; i != s->base.tail && s->clients; i++) {
        if (s->ring[i & DMN_RING_MASK]->admitted) {
            dmn_clients_count(s->clients, &(struct dmn_frame_end){.status = IPC_CANCELLED,
                                                                  .policy = s->policy,
                                                                  .why = DMN_NO_RESULT_CANCELLED});
        }
    }
}

void dmn_stream_move(struct dmn_stream *s, struct dmn_clients *to)
{
    size_t waiting = s->queue.flow.waiting;
    uint64_t moved = admitted(s);

    for (size_t i = 0; i < waiting; i++) {
        dmn_admission_drop(&s->clients->admission, &s->queue);
    }
    s->clients->model->stats.admitted -= moved;
    to->model->stats.admitted += moved;
    unlink_stream(s);
    link_stream(to, s);
    for (size_t i = 0; i < waiting; i++) {
        dmn_admission_add(&to->admission, &s->queue);
    }
}

/* Return: false: out of memory; some of the records may have been added. */
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

struct dmn_stream *dmn_stream_free(struct dmn_stream *s)
{
    count_unanswered(s);
    unlink_stream(s);
    dmn_queue_leave(&s->slices);
    while (s->free) {
        struct dmn_record *r = s->free;

        s->free = r->next_free;
        if (s->peer) {
            s->peer->inline_bytes -= r->buffer_bytes;
        }
        dmn_record_free(r);
    }
    for (; s->base.head != s->base.tail; s->base.head++) {
        dmn_record_free(s->ring[s->base.head & DMN_RING_MASK]);
    }
    for (size_t i = 0; i < IPC_POOLS_MAX; i++) {
        s->base.memory[i] = ipc_memory_unref(s->base.memory[i]);
    }
    ipc_description_hold(&s->described, NULL);
    free(s);
    return NULL;
}

static uint32_t grant(const struct dmn_peer *p, uint32_t wanted, size_t depth)
{
    uint32_t limit = (uint32_t)dmn_config_int(*p->frames->config, DMN_KEY_LIMIT_CREDITS);

    /* enough for one full pipeline to run while another is on its way */
    wanted = wanted ? wanted : (uint32_t)base_min(2 * depth, (size_t)IPC_CREDITS_MAX);
    limit = base_min(limit, IPC_CREDITS_MAX);
    wanted = base_min(wanted, limit);
    return base_max(wanted, 1u);
}

struct dmn_stream *dmn_stream_new(struct dmn_peer *p, struct dmn_clients *w, uint32_t id,
                                  const struct ipc_open *o)
{
    const struct dmn_model *m = w->model;
    struct dmn_stream *s = calloc(1, sizeof(*s));

    if (!s) {
        return NULL;
    }
    s->peer = p;
    s->base.id = id;
    s->format.pixfmt = (enum ipc_pixfmt)o->pixfmt;
    s->policy = (enum ipc_policy)o->policy;
    if (m->latest && s->policy == IPC_POLICY_BLOCK) {
        s->policy = IPC_POLICY_LATEST;
    }
    s->auto_credits = o->credits == 0;
    s->base.flow.credits = grant(p, o->credits, dmn_model_depth(m));
    s->base.flow.deadline_ns = o->deadline_ns;
    dmn_queue_init(&s->queue, o->priority);
    dmn_queue_init(&s->slices, o->priority);
    dmn_travel_plan(m->model, m->model->inputs, m->model->input_count, m->in_offset, m->input_bytes,
                    o->input_dtype == IPC_F16, &s->format.input);
    dmn_travel_plan(m->model, m->model->outputs, m->model->output_count, m->out_offset,
                    m->output_bytes, o->output_dtype == IPC_F16, &s->format.output);
    link_stream(w, s);
    if (!grow_records(s, s->base.flow.credits + DMN_SPARE_RECORDS)) {
        return dmn_stream_free(s);
    }
    return s;
}

void dmn_stream_unqueue(struct dmn_record *r, enum dmn_no_result why)
{
    struct dmn_stream *s = r->stream;

    dmn_admission_drop(&s->clients->admission, &s->queue);
    dmn_record_fail(r, why);
}

/* Makes waiting frames DONE without running them; cancels running ones if nobody gets their
 * answer. */
static void give_up_waiting(struct dmn_stream *s, enum dmn_no_result why)
{
    for (uint32_t i = s->base.head; i != s->base.tail; i++) {
        struct dmn_record *r = s->ring[i & DMN_RING_MASK];

        if (r->state == DMN_RECORD_QUEUED) {
            dmn_stream_unqueue(r, why);
        } else if (r->state == DMN_RECORD_RUNNING && !s->peer) {
            dmn_record_cancel(r);
        } else if (r->state == DMN_RECORD_PREPARING && !s->peer) {
            r->give_up = why;
        }
    }
}

void dmn_stream_wait(struct dmn_record *r)
{
    struct dmn_stream *s = r->stream;
    uint32_t at = s->base.head;

    while (at != s->next && s->ring[at & DMN_RING_MASK] != r) {
        at++;
    }
    s->next = at;
    dmn_record_turn(r, DMN_RECORD_QUEUED);
    dmn_admission_add(&s->clients->admission, &s->queue);
}

void dmn_stream_returned(struct dmn_stream *s)
{
    s->running--;
    if (s->peer) {
        ipc_conn_mark(&s->peer->base);
    } else if (s->running == 0) {
        dmn_stream_free(s);
    }
}

void dmn_stream_orphan(struct ipc_stream *stream)
{
    struct dmn_stream *s = dmn_stream_of(stream);

    s->peer = NULL;
    give_up_waiting(s, DMN_NO_RESULT_CANCELLED);
    if (s->running == 0) {
        dmn_stream_free(s);
    }
}

void dmn_stream_detach(struct dmn_stream *s)
{
    struct dmn_peer *p = s->peer;

    if (!p) {
        dmn_stream_free(s);
        return;
    }
    give_up_waiting(s, DMN_NO_RESULT_UNLOADED);
    for (uint32_t i = s->base.head; i != s->base.tail;
         i++) { /* only at the end: no team computes any more */
        struct dmn_record *r = s->ring[i & DMN_RING_MASK];

        if (r->state == DMN_RECORD_RUNNING) {
            r->running = NULL;
            r->far.at = NULL;
            s->running--;
            dmn_record_fail(r, DMN_NO_RESULT_STOPPED);
        }
    }
    unlink_stream(s);
    ipc_conn_mark(&p->base);
}

void dmn_stream_more_credits(struct dmn_stream *s, size_t depth)
{
    struct ipc_credit m = {0};
    uint32_t wanted;

    if (!s->peer || !s->auto_credits || s->base.closing) {
        return;
    }
    wanted = grant(s->peer, 0, depth);
    if (wanted <= s->base.flow.credits || !grow_records(s, wanted - s->base.flow.credits)) {
        return;
    }
    dmn_stream_use_until(&s->use, &s->base.flow, base_now_ns());
    m.credits = wanted - s->base.flow.credits;
    s->base.flow.credits = wanted;
    ipc_conn_send(&s->peer->base, (struct ipc_header){.type = IPC_CREDIT, .stream = s->base.id}, &m,
                  sizeof(m), NULL, 0);
}

void dmn_stream_describe(struct dmn_stream *s, struct ipc_description *d)
{
    const char *known = s->described ? s->described->text : "";

    if (d == s->described) {
        return;
    }
    if (s->peer->base.features & IPC_FEATURE_DESCRIBED && strcmp(d->text, known) != 0) {
        size_t done = 0, part;

        do { /* in parts; an empty text has one */
            part = base_min(d->bytes - done, (size_t)IPC_UNKNOWN_MAX);
            ipc_conn_send(&s->peer->base,
                          (struct ipc_header){.type = IPC_DESCRIBED,
                                              .stream = s->base.id,
                                              .flags = d->bytes - done > part ? IPC_FLAG_MORE : 0},
                          d->text + done, part, NULL, 0);
            done += part;
        } while (done < d->bytes);
    }
    ipc_description_hold(&s->described, d);
}

void dmn_stream_event(struct dmn_stream *s, enum ipc_event event, uint32_t epoch)
{
    if (s->peer && !s->peer->base.closed && !ipc_conn_backlogged(&s->peer->base)) {
        ipc_conn_event(&s->peer->base, s->base.id, event, epoch);
    }
}
