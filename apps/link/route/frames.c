/* SPDX-License-Identifier: Apache-2.0 */
/* piped-link: frames of the front, to boards and back. */
#include "apps/link/route/route_private.h"

static void finish(struct head_frame *f)
{
    struct front_frame *front = f->front;
    uint64_t waited_ns = base_now_ns() - f->begun_ns;

    if (f->alone && f->status == 0) {
        head_pace_frame(f->head, waited_ns);
    }
    f->front = NULL;
    f->head->forsaken -= f->forsaken;
    f->next_free = f->head->free;
    f->head->free = f;
    f->head->taken--;
    front_answer(f->head->link->front, front, (int)f->status, NULL, f->route,
                 waited_ns - base_min(waited_ns, f->service_ns), f->service_ns);
}

/* The transport has let go of a frame's input. */
static void let_go(void *arg)
{
    struct head_frame *f = arg;

    if (--f->held == 0 && f->released) {
        finish(f);
    }
}

int route_frame(void *user, struct front_frame *front)
{
    struct link *l = user;
    struct head *h = head_by_model(l, front->model);
    struct head_frame *f = h ? h->free : NULL;
    uint64_t number;

    if (!h || !head_present(h)) {
        return PIPED_UNAVAILABLE;
    }
    if (!f || lnk_ledger_admit(h->ledger, f, front->deadline_ns, &number) != 0) {
        return PIPED_UNAVAILABLE; /* the daemon computes it itself */
    }
    h->free = f->next_free;
    *f = (struct head_frame){.head = h,
                             .front = front,
                             .alone = h->taken == 0,
                             .number = number,
                             .begun_ns = base_now_ns()};
    h->taken++;
    front->user = f;
    h->numbered[number % HEAD_FRAMES] = f;
    return 0;
}

uint32_t route_share(void *user, const char *model)
{
    const struct head *h = head_by_model(user, model);

    return h ? base_max(h->state.window, 1u) : 1;
}

void route_gone(void *user, struct front_frame *front)
{
    struct head_frame *f = front->user;

    if (lnk_ledger_cancel(f->head->ledger, f->number, PIPED_CANCELLED) == LNK_LEDGER_E_SENT) {
        f->forsaken = true;
        f->head->forsaken++;
    }
}

/* Which board has it is not known here: all of the epoch that understand it are told. */
static void send_cancel(struct head *h, const struct head_epoch *e, const struct head_frame *f)
{
    struct lnk_message m = {.header.type = LNK_CANCEL};

    m.cancel = (struct lnk_cancel){h->stream, e->number, f->number};
    for (size_t board = 0; board < h->link->boards.count; board++) {
        if (head_uses(h, e, board) && link_takes(h->link, board, LNK_HELLO_CANCEL)) {
            link_put(h->link, board, LNK_BULK, &m, NULL, 0, NULL, NULL);
        }
    }
    if (head_uses(h, e, LINK_SELF)) {
        link_put(h->link, LINK_SELF, LNK_BULK, &m, NULL, 0, NULL, NULL);
    }
}

void head_cancel(struct head *h)
{
    for (size_t i = 0; h->forsaken > 0 && i < HEAD_FRAMES; i++) {
        struct head_frame *f = &h->frame[i];

        if (f->front && f->forsaken) {
            f->forsaken = false;
            h->forsaken--;
            for (size_t k = 0; k < HEAD_EPOCHS_MAX && !f->released; k++) {
                if (h->epoch[k].ledger) {
                    send_cancel(h, &h->epoch[k], f);
                }
            }
        }
    }
}

/* Return: how many tensors; @m and @range have them. */
static size_t put_input(const struct head_frame *f, const struct brd_route *r,
                        struct lnk_message *m, struct lnk_bytes *range)
{
    const struct front_picture *p = &f->front->picture;

    if (p->pixfmt) {
        m->tensor[0] = (struct lnk_tensor){.dtype = LNK_U8,
                                           .rank = 3,
                                           .is_picture = 1,
                                           .dim = {p->pixfmt, p->height, p->width},
                                           .bytes = p->bytes};
        range[0] = (struct lnk_bytes){f->front->input, p->bytes};
        return 1;
    }
    for (size_t i = 0; i < r->input_count; i++) {
        const struct brd_tensor *t = &r->input[i];

        m->tensor[i] = (struct lnk_tensor){
            .dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->rank, .bytes = t->bytes};
        memcpy(m->tensor[i].dim, t->dim, t->rank * sizeof(t->dim[0]));
        range[i] = (struct lnk_bytes){f->front->input + front_offset(r->input, r->input_count, i),
                                      t->bytes};
    }
    return r->input_count;
}

/* Return: as lnk_send(). */
static int send_frame(struct head *h, const struct head_epoch *e, const struct lnk_due *due)
{
    struct head_frame *f = due->input;
    struct lnk_message m = {.header.type = LNK_FRAME};
    struct lnk_bytes range[BRD_TENSORS_MAX];
    size_t count = put_input(f, e->route, &m, range);
    int rc;

    m.frame = (struct lnk_frame){.stream = h->stream,
                                 .epoch = e->number,
                                 .frame = due->frame,
                                 .left_ns = due->left_ns,
                                 .tensor_count = (uint8_t)count,
                                 .way = due->way};
    if (f->front->theirs) { /* copied: libzmq has threads of its own */
        return link_put(h->link, due->way, LNK_BULK, &m, range, count, NULL, NULL);
    }
    f->held++;
    rc = link_put(h->link, due->way, LNK_BULK, &m, range, count, let_go, f);
    if (rc != 0) {
        f->held--;
    }
    return rc;
}

void head_send(struct head *h, uint64_t now_ns)
{
    const struct head_epoch *e = head_present(h);
    struct lnk_due due;

    /* Without an epoch no way has credit, but deadlines pass. */
    while (h->pause_ns <= now_ns &&
           lnk_ledger_next(h->ledger, now_ns, PIPED_DEADLINE_EXCEEDED, &due) == 0) {
        const struct head_frame *f = due.input;

        if (e && f->front->picture.pixfmt && !e->pictures) { /* another epoch than when it came */
            lnk_ledger_answer(h->ledger, due.frame, due.epoch, due.way, PIPED_UNSUPPORTED, NULL);
            continue;
        }
        if (!e || send_frame(h, e, &due) != 0) {
            lnk_ledger_unsend(h->ledger, &due);
            return; /* room or a loss will come as an event */
        }
        lnk_progress_due(&h->progress, now_ns);
    }
}

/* Do an answer's tensors fit the model's outputs? */
static bool fits(const struct brd_route *r, const struct lnk_message *m)
{
    bool same = m->answer.tensor_count == r->output_count;

    for (size_t i = 0; same && i < r->output_count; i++) {
        same = m->tensor[i].dtype == r->output[i].dtype && !m->tensor[i].is_picture &&
               m->tensor[i].bytes == r->output[i].bytes;
    }
    return same;
}

/* Only the last hop answers; where it is the first, too, only the board that has the frame. */
static bool may_answer(const struct head *h, const struct head_epoch *e, size_t board, uint32_t way)
{
    const struct brd_route *r = e->route;

    return head_hop_has(h, &r->hop[r->hop_count - 1], board) && (r->hop_count > 1 || way == board);
}

static void note_times(struct head *h, struct head_frame *f, const struct lnk_message *m)
{
    for (size_t i = 0; i < m->answer.time_count && i < BRD_HOPS_MAX; i++) {
        double ns = (double)lnk_number(m, i), *mean = &h->state.service_ns[i];

        *mean = *mean > 0 ? *mean + (ns - *mean) / 8 : ns;
        f->service_ns += lnk_number(m, i);
    }
}

void route_answer(struct link *l, size_t board, const struct lnk_message *m)
{
    struct head *h = head_by_stream(l, m->answer.stream);
    struct head_epoch *e = h ? head_epoch(h, m->answer.epoch) : NULL;
    struct head_frame *f;

    if (!e || !e->ledger || !may_answer(h, e, board, m->answer.way)) {
        if (h) {
            h->late++; /* of an epoch that is over, or another board's to give */
        }
        return;
    }
    if (!fits(e->route, m)) {
        head_epoch_fail(h, e, board, LINK_NOBODY, "an answer has another shape than the model's");
        return;
    }
    f = h->numbered[m->answer.frame % HEAD_FRAMES];
    if (lnk_ledger_answer(h->ledger, m->answer.frame, e->ledger, m->answer.way, 0, f) != 0) {
        return; /* late or doubled: the ledger counts it */
    }
    for (size_t i = 0; i < e->route->output_count; i++) {
        memcpy(f->front->output + front_offset(e->route->output, e->route->output_count, i),
               m->part[i].data, m->part[i].bytes);
    }
    lnk_progress_came(&h->progress, base_now_ns());
    f->route = e->route->number;
    h->state.answered++;
    note_times(h, f, m);
}

void head_answer(struct head *h)
{
    bool full = h->taken >= h->state.window;
    struct lnk_done done;
    uint32_t count = 0;

    while (lnk_ledger_release(h->ledger, &done) == 0) {
        struct head_frame *f = done.input;

        count++;
        f->status = done.status;
        f->released = true;
        if (f->held == 0) {
            finish(f);
        }
    }
    if (count > 0) {
        head_pace_answers(h, count, full, base_now_ns());
    }
}
