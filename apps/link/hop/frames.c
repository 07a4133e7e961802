/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: frames into segments, and what they computed out of them. */
#include "apps/link/common/ledger.h"
#include "apps/link/hop/hop_private.h"
#include "ipc/boards/route_window.h"

struct hop_place *hop_places(struct hops *h, struct hop_place *before)
{
    for (struct hop_place *p = before ? before + 1 : h->place; p < h->place + HOP_PLACES_MAX; p++) {
        if (p->number) {
            return p;
        }
    }
    return NULL;
}

struct hop_place *hop_place(struct hops *h, uint64_t number)
{
    for (size_t i = 0; i < HOP_PLACES_MAX; i++) {
        if (h->place[i].number == number) {
            return &h->place[i];
        }
    }
    return NULL;
}

static struct hop_place *place_for(struct hops *h, size_t from, const struct lnk_frame *f)
{
    for (struct hop_place *p = NULL; (p = hop_places(h, p));) {
        bool sender = f->hop == 0 ? p->head == from : (p->from & 1u << from) != 0;

        if (p->stream == f->stream && p->epoch == f->epoch && p->hop == f->hop && sender) {
            return p;
        }
    }
    return NULL;
}

/* @came_ns: when it came here. Return: 0 or a status; RESOURCE_EXHAUSTED: no slot is free. */
static int submit(struct hop_place *p, const struct lnk_message *m, uint64_t came_ns)
{
    struct segment *s = p->segment;
    bool picture = m->tensor[0].is_picture;
    uint32_t pixfmt = picture ? m->tensor[0].dim[0] : PIXFMT_TENSOR;
    struct segment_job *j = NULL;
    int status = PIPED_RESOURCE_EXHAUSTED;

    if (s->phase == SEGMENT_READY) {
        status = picture && p->hop > 0 ? PIPED_INVALID_ARGUMENT : segment_lane_open(s, pixfmt);
        j = status == 0 ? segment_job(s, pixfmt) : NULL;
    }
    if (!j) {
        return status ? status : PIPED_RESOURCE_EXHAUSTED;
    }
    status = picture ? hop_border_picture(m, j->frame)
                     : hop_border_take(piped_stream_info(j->stream), m, j->frame);
    if (status == 0) {
        j->place = p->number;
        j->of = m->frame;
        j->to = LINK_NOBODY;
        j->deadline_ns = m->frame.left_ns ? came_ns + m->frame.left_ns : 0;
        j->time_count = base_min((size_t)m->frame.time_count, (size_t)LNK_HOPS_MAX - 1);
        for (size_t i = 0; i < j->time_count; i++) {
            j->time_ns[i] = lnk_number(m, i);
        }
        j->frame->deadline_ns = j->deadline_ns;
        status = piped_submit(j->stream, j->frame) < 0 ? PIPED_UNAVAILABLE : 0;
    }
    if (status == 0) {
        lnk_progress_due(&s->progress, base_now_ns());
    } else {
        segment_job_end(j);
    }
    return status;
}

/* @head: that is told. Return: as lnk_send(). */
static int put_error(struct link *l, size_t head, const struct lnk_frame *f, int status,
                     const char *text)
{
    struct lnk_error e = {.stream = f->stream,
                          .epoch = f->epoch,
                          .frame = f->frame,
                          .hop = f->hop,
                          .status = (uint16_t)status,
                          .way = (uint16_t)f->way};

    return link_put_error(l, head, &e, text);
}

/* ---- frames that wait ---- */

void hop_drop_waiting(struct hop_queue *q, struct hop_waiting *w)
{
    TAILQ_REMOVE(&q->frames, w, linked);
    q->count--;
    q->bytes -= w->bytes;
    free(w);
}

/* Copies a FRAME. Return: false: there is no room for it. */
static bool keep(struct hop_queue *q, uint64_t place, const struct lnk_message *m)
{
    size_t bytes = m->tail_bytes;
    struct hop_waiting *w;
    uint8_t *at;

    for (size_t i = 0; i < m->frame.tensor_count; i++) {
        bytes += m->part[i].bytes;
    }
    if (q->count == LNK_LEDGER_MAX || bytes > BRD_WINDOW_BYTES - q->bytes) {
        return false;
    }
    w = malloc(sizeof(*w) + bytes);
    if (!w) {
        return false;
    }
    w->place = place;
    w->came_ns = base_now_ns();
    w->bytes = bytes;
    w->message = *m;
    w->message.tail = w->data;
    w->message.part = w->part;
    if (m->tail_bytes > 0) {
        memcpy(w->data, m->tail, m->tail_bytes);
    }
    at = w->data + m->tail_bytes;
    for (size_t i = 0; i < m->frame.tensor_count; i++) {
        memcpy(at, m->part[i].data, m->part[i].bytes);
        w->part[i] = (struct lnk_bytes){at, m->part[i].bytes};
        at += m->part[i].bytes;
    }
    TAILQ_INSERT_TAIL(&q->frames, w, linked);
    q->count++;
    q->bytes += bytes;
    return true;
}

/* Does a frame of the place's segment wait? */
static bool others_wait(struct hops *h, const struct hop_place *p)
{
    struct hop_waiting *w;

    TAILQ_FOREACH(w, &h->queue.frames, linked) {
        const struct hop_place *of = hop_place(h, w->place);

        if (of && of->segment == p->segment) {
            return true;
        }
    }
    return false;
}

void hop_frame(struct link *l, size_t from, const struct lnk_message *m)
{
    struct hop_place *p = place_for(l->hops, from, &m->frame);
    int status = !p                        ? PIPED_NOT_FOUND
                 : others_wait(l->hops, p) ? PIPED_RESOURCE_EXHAUSTED
                                           : submit(p, m, base_now_ns());

    if (status == PIPED_RESOURCE_EXHAUSTED && p->segment->phase == SEGMENT_READY &&
        keep(&l->hops->queue, p->number, m)) {
        status = 0;
    }
    if (status != 0) { /* Without a place its head is unknown, so the sender tells it. */
        put_error(l, p ? p->head : from, &m->frame, status, piped_status_name(status));
    } else if (p->head != LINK_SELF) { /* who sent it may be another board of the route */
        l->peer[p->head].frames++;
    }
}

/* Gives frames that wait to their segments, as far as these have slots. */
static void submit_waiting(struct link *l)
{
    const struct segment *full[SEGMENTS_MAX];
    struct hop_waiting *w = TAILQ_FIRST(&l->hops->queue.frames), *next;
    size_t full_count = 0;

    for (; w && full_count < SEGMENTS_MAX; w = next) {
        struct hop_place *p = hop_place(l->hops, w->place);
        bool is_full = false;
        int status;

        next = TAILQ_NEXT(w, linked);
        for (size_t i = 0; p && i < full_count; i++) {
            is_full |= full[i] == p->segment;
        }
        if (is_full) {
            continue;
        }
        status = p ? submit(p, &w->message, w->came_ns) : 0; /* its epoch is over */
        if (status == PIPED_RESOURCE_EXHAUSTED) {
            full[full_count++] = p->segment;
            continue;
        }
        if (status != 0) {
            put_error(l, p->head, &w->message.frame, status, piped_status_name(status));
        }
        hop_drop_waiting(&l->hops->queue, w);
    }
}

/* Nobody wants a frame that waits here. Return: it waited. */
static bool drop_waiting(struct link *l, const struct hop_place *p, uint64_t frame)
{
    struct hop_waiting *w;

    TAILQ_FOREACH(w, &l->hops->queue.frames, linked) {
        if (w->place == p->number && w->message.frame.frame == frame) {
            put_error(l, p->head, &w->message.frame, PIPED_CANCELLED,
                      piped_status_name(PIPED_CANCELLED));
            hop_drop_waiting(&l->hops->queue, w);
            return true;
        }
    }
    return false;
}

void hop_cancel(struct link *l, size_t head, const struct lnk_message *message)
{
    const struct lnk_cancel *m = &message->cancel;

    for (struct hop_place *p = NULL; (p = hop_places(l->hops, p));) {
        struct segment *s = p->segment;

        if (p->head != head || p->stream != m->stream || p->epoch != m->epoch ||
            drop_waiting(l, p, m->frame) || s->phase != SEGMENT_READY) {
            continue;
        }
        for (size_t k = 0; k < SEGMENT_SLOTS_MAX; k++) {
            const struct segment_job *j = &s->job[k];

            if (j->frame && j->place == p->number && j->of.frame == m->frame) {
                piped_cancel(j->stream, j->frame); /* the daemon answers it */
            }
        }
    }
}

/* Smooth weighted round robin: dispatched frames never differ by more than one from the shares. */
static size_t dispatch(struct hop_place *p)
{
    size_t best = 0;
    int all = 0;

    for (size_t i = 0; i < p->next_count; i++) {
        all += p->next[i].share;
        p->next[i].due += p->next[i].share;
        best = p->next[i].due > p->next[best].due ? i : best;
    }
    p->next[best].due -= all;
    return p->next[best].board;
}

/* The transport has let go of an answer. */
static void sent(void *arg)
{
    struct segment_job *j = arg;

    j->segment->held--;
    segment_job_end(j);
}

/* The message for the next hop, or the answer for the head. */
static void make_message(const struct hop_place *p, const struct segment_job *j, uint64_t left_ns,
                         size_t tensors, struct lnk_message *m)
{
    if (p->last) {
        m->header.type = LNK_ANSWER;
        m->answer = (struct lnk_answer){.stream = j->of.stream,
                                        .epoch = j->of.epoch,
                                        .frame = j->of.frame,
                                        .queue_ns = j->frame->queue_ns,
                                        .service_ns = j->frame->service_ns,
                                        .hop = j->of.hop,
                                        .tensor_count = (uint8_t)tensors,
                                        .way = j->of.way};
    } else {
        m->header.type = LNK_FRAME;
        m->frame = j->of;
        m->frame.hop++;
        m->frame.left_ns = left_ns;
        m->frame.tensor_count = (uint8_t)tensors;
    }
    m->tail = (const uint8_t *)j->time_ns;
    m->tail_bytes = j->time_count * sizeof(j->time_ns[0]);
}

/* Sends what a segment computed, from its slot. Return: as lnk_send(). */
static int send_on(struct link *l, struct hop_place *p, struct segment_job *j, uint64_t left_ns)
{
    struct lnk_bytes range[LNK_PARTS_MAX];
    struct lnk_message m = {.header = {0}};
    size_t count = hop_border_put(piped_stream_info(j->stream), j->frame, &m, range);
    int rc;

    make_message(p, j, left_ns, count, &m);
    j->segment->held++;
    rc = link_put(l, j->to, LNK_BULK, &m, range, count, sent, j);
    if (rc != 0) {
        j->segment->held--;
    }
    return rc;
}

/* What becomes of a computed frame. Return: LNK_E_FULL: try again later; else it is done with. */
static int pass_on(struct link *l, struct hop_place *p, struct segment_job *j)
{
    uint64_t now_ns = base_now_ns();
    uint64_t left_ns = j->deadline_ns > now_ns ? j->deadline_ns - now_ns : 0;
    int rc;

    if (j->frame->status != PIPED_OK) {
        rc = put_error(l, p->head, &j->of, j->frame->status, j->frame->text);
    } else if (!p->last && j->deadline_ns && left_ns == 0) {
        rc = put_error(l, p->head, &j->of, PIPED_DEADLINE_EXCEEDED,
                       "it was late between two boards");
    } else {
        j->to = j->to != LINK_NOBODY ? j->to : p->last ? p->head : dispatch(p);
        rc = send_on(l, p, j, left_ns);
        if (rc == 0) {
            return 0; /* sent() frees the slot */
        }
        if (rc != LNK_E_FULL && rc != -ENOMEM) { /* a lost head sends it again, when it is back */
            put_error(l, p->head, &j->of, p->last ? PIPED_INTERNAL : PIPED_UNAVAILABLE,
                      link_print(l, j->to));
        }
    }
    if (rc == -ENOMEM) {
        rc = LNK_E_FULL;
    }
    if (rc != LNK_E_FULL) {
        segment_job_end(j);
    }
    return rc;
}

/* A stream that says so of a frame serves no more. */
static bool serves_no_more(const struct piped_frame *f)
{
    return f->status == PIPED_UNAVAILABLE || f->status == PIPED_NOT_FOUND;
}

static void segment_answers(struct link *l, struct segment *s)
{
    struct segment_job *j = s->waits_for_link;
    struct piped_frame *f = NULL;

    s->waits_for_link = NULL;
    while (j || (f = segment_next(s)) != NULL) {
        struct hop_place *p;

        if (!j) {
            j = f->user;
            lnk_progress_came(&s->progress, base_now_ns());
        }
        p = hop_place(l->hops, j->place);
        if (!p) { /* its epoch is over */
            segment_job_end(j);
        } else if (serves_no_more(j->frame)) {
            segment_job_end(j);
            segment_fail(s, PIPED_UNAVAILABLE, "the daemon serves it no more");
            return;
        } else {
            if (j->time_count < LNK_HOPS_MAX) {
                j->time_ns[j->time_count] = j->frame->service_ns;
                j->time_count += j->to == LINK_NOBODY;
            }
            if (pass_on(l, p, j) == LNK_E_FULL) {
                s->waits_for_link = j;
                return;
            }
        }
        j = NULL;
    }
}

void hop_go(struct link *l)
{
    struct segment *s;
    size_t at = 0;

    while ((s = segments_each(l, &at))) {
        segment_answers(l, s);
    }
    submit_waiting(l);
}
