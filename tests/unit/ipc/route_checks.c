/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ipc/route_checks.h"

#define BOUNDS 4096u

/* The largest window of a way in an epoch so far. */
struct bound {
    uint32_t stream, epoch, way, most;
};

const char *const names[MODELS] = {"first", "second"};
struct frame frame[FRAMES];
size_t frame_count, answered, oldest;
unsigned withdrawals[MODELS];
static struct bound bound[BOUNDS];
static size_t bound_count;

void forget_all(void)
{
    frame_count = answered = oldest = bound_count = 0;
    memset(withdrawals, 0, sizeof(withdrawals));
}

static struct bound *find_bound(uint32_t stream, uint32_t epoch, uint32_t way)
{
    for (size_t i = bound_count; i-- > 0;) {
        if (bound[i].stream == stream && bound[i].epoch == epoch && bound[i].way == way) {
            return &bound[i];
        }
    }
    return NULL;
}

static void note_bound(uint32_t stream, uint32_t epoch, uint32_t way, uint32_t window)
{
    struct bound *b = find_bound(stream, epoch, way);

    if (!b) {
        b = &bound[bound_count++ % BOUNDS];
        *b = (struct bound){stream, epoch, way, 0};
        bound_count = base_min(bound_count, (size_t)BOUNDS - 1);
    }
    b->most = base_max(b->most, window);
}

/* The windows of the ways, as routes and boards are now. */
static void note_bounds(void)
{
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        struct head *h = head.heads->head[i];
        const struct head_epoch *e = h ? head_present(h) : NULL;
        const struct brd_hop *hop = e ? &e->route->hop[0] : NULL;
        uint32_t shares = 0;

        for (size_t k = 0; e && k < hop->board_count; k++) {
            shares += hop->board[k].share;
        }
        for (size_t k = 0; e && k < hop->board_count; k++) {
            uint32_t all = head_window(h, e) * hop->board[k].share / shares;

            note_bound(h->stream, e->number, (uint32_t)link_find(&head, hop->board[k].print),
                       e->route->hop_count == 1 ? head_way_window(h, e, k) : base_max(all, 1u));
        }
    }
}

void sent(const struct lnk_frame *m, const struct lnk_bytes *part)
{
    const struct bound *b = find_bound(m->stream, m->epoch, m->way);
    struct frame *f;
    uint64_t value[2];

    T_EQ(m->tensor_count, 2);
    memcpy(&value[0], part[0].data, sizeof(value[0]));
    memcpy(&value[1], part[1].data, sizeof(value[1]));
    T_LT(value[0], frame_count);
    T_EQ(value[1], ~value[0]);
    f = &frame[value[0]];
    T_EQ(f->answers, 0);
    T_TRUE(!f->front.gone);
    T_EQ(f->stream, m->stream);
    T_TRUE(f->number == 0 || f->number == m->frame);
    f->number = m->frame;
    f->route = head_epoch(head_by_stream(&head, m->stream), m->epoch)->route->number;
    f->epoch = m->epoch;
    f->way = m->way;
    T_EQ(m->left_ns, f->front.deadline_ns ? f->front.deadline_ns - clock_ns : 0);
    T_TRUE(b != NULL);
    T_LE(boards_open(m->stream, m->epoch, m->way), b->most);
}

void failed(uint32_t stream, uint64_t number)
{
    for (size_t i = oldest; i < frame_count; i++) {
        if (frame[i].stream == stream && frame[i].number == number) {
            frame[i].failed = true;
        }
    }
}

/* An earlier frame of the stream may wait only for the transport to let go of its input. */
static void check_order(const struct frame *f)
{
    for (const struct frame *g = &frame[oldest]; g < f; g++) {
        if (g->stream == f->stream && g->answers == 0) {
            T_TRUE(boards_holding(g->stream, g->number));
        }
    }
}

void __wrap_front_answer(struct front *front, struct front_frame *fr, int status, const char *text,
                         uint32_t epoch, uint64_t queue_ns, uint64_t service_ns);
void __wrap_front_answer(struct front *front, struct front_frame *fr, int status, const char *text,
                         uint32_t epoch, uint64_t queue_ns, uint64_t service_ns)
{
    struct frame *f = base_container_of(fr, struct frame, front);
    uint64_t wanted = boards_answer((uint64_t)(f - frame));

    (void)front, (void)text, (void)queue_ns;
    T_EQ(f->answers, 0);
    check_order(f);
    f->answers++;
    f->status = status;
    answered++;
    if (status == PIPED_OK) {
        T_EQ(epoch, f->route); /* not the answer to an earlier time that it was sent */
        T_EQ(service_ns, boards_ns(f->epoch, f->way));
        T_TRUE(f->output[0] == wanted && f->output[8] == ~wanted);
    } else if (status == PIPED_UNAVAILABLE) {
        T_LT(f->withdrawals, withdrawals[f->model]);
    } else if (status == PIPED_DEADLINE_EXCEEDED) {
        T_TRUE(f->front.deadline_ns != 0);
        T_LE(f->front.deadline_ns, clock_ns);
    } else if (status == PIPED_CANCELLED) {
        T_TRUE(f->front.gone);
    } else {
        T_EQ(status, PIPED_INTERNAL);
        T_TRUE(f->failed);
    }
    while (oldest < frame_count && frame[oldest].answers > 0) {
        oldest++;
    }
    memset(f->input, 0xff, sizeof(f->input)); /* it is the front's again */
}

void go(void)
{
    struct lnk_ledger_counts c;

    note_bounds();
    route_go(&head, clock_ns);
    for (size_t i = 0; i < BRD_ROUTES_MAX; i++) {
        if (head.heads->head[i]) {
            lnk_ledger_counts(head.heads->head[i]->ledger, &c);
            T_EQ(c.admitted, c.released + c.waiting + c.in_flight + c.held);
        }
    }
}

void pass(uint64_t ns)
{
    clock_ns += ns;
    go();
}
