/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_query.h"

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/eval_boards.h"
#include "tuner/solve/solve.h"

#define SHORTENINGS 6
#define NEAR 1.02
#define MIB 1048576.0
#define GAP_BYTES 4.0 /* the least that a border has */

int dmn_spread_query_init(struct dmn_spread_query *q, struct tun_problem *here,
                          const struct dmn_spread_inputs *in, const struct dmn_present *present)
{
    memset(q, 0, sizeof(*q));
    q->here = *here;
    *here = TUN_PROBLEM_NULL;
    q->report = *in->report;
    q->report.self.costs_count = 0;
    for (size_t i = 0; i < q->report.board_count; i++) {
        q->report.board[i].costs_count = 0;
        q->may.usable[i] = true;
    }
    q->may = in->may ? *in->may : q->may;
    if (present && present->hop_count > 0) {
        q->hop_count = present->hop_count;
        memcpy(q->hop, present->hop, q->hop_count * sizeof(q->hop[0]));
    }
    if (dmn_past_copy(in->past, &q->past) != 0) {
        dmn_spread_query_deinit(q);
        return -ENOMEM;
    }
    return 0;
}

void dmn_spread_query_deinit(struct dmn_spread_query *q)
{
    tun_problem_deinit(&q->here);
    dmn_past_deinit(&q->past);
}

/* Return: of dmn_spread_table_init(); they borrow @q. */
static struct dmn_spread_inputs inputs_of(const struct dmn_spread_query *q)
{
    return (struct dmn_spread_inputs){
        .here = &q->here, .report = &q->report, .past = &q->past, .may = &q->may};
}

int dmn_spread_query_table(const struct dmn_spread_query *q, struct dmn_spread_table *ret)
{
    struct dmn_spread_inputs in = inputs_of(q);

    return dmn_spread_table_init(&in, ret);
}

static int judge_alone(const struct dmn_spread_table *t, struct dmn_figures *ret)
{
    base_autofree struct tun_solution *s = calloc(1, sizeof(*s));
    base_cleanup(tun_problem_deinit) struct tun_problem alone = TUN_PROBLEM_NULL;
    int r = s ? dmn_spread_alone(t, &alone) : -ENOMEM;

    r = r ? r : tun_solve(&alone, s);
    if (r >= 0) {
        *ret = dmn_spread_figures(&alone, &s->plan, &s->outcome);
    }
    return base_min(r, 0);
}

/* Takes a solution if it is better than what there is. */
static void take(const struct dmn_spread_table *t, const struct tun_solution *s,
                 struct dmn_spread_answer *ret)
{
    struct dmn_figures f = dmn_spread_figures(&t->p, &s->plan, &s->outcome);

    if (f.possible && (!ret->best.possible || f.bottleneck_ns < ret->best.bottleneck_ns)) {
        ret->best = f;
        ret->plan = s->plan;
        memcpy(ret->limit, f.limit, sizeof(ret->limit));
    }
}

/* A route has only so many frames on their way. Where that decides, a plan of less latency may have
 * a higher throughput: the bound on latency at which both are equal is closed in on. */
static int shorten(const struct dmn_spread_table *t, struct tun_solution *s,
                   struct dmn_spread_answer *ret)
{
    double low = s->outcome.bottleneck_ns, frames = dmn_spread_frames(&t->p, &s->plan);
    double most = t->p.bounds.latency_max_ns, high = s->outcome.latency_ns / frames;
    struct tun_problem p = t->p; /* borrows */
    int r = 0;

    for (int i = 0; i < SHORTENINGS && r >= 0 && high > low * NEAR; i++) {
        double period = sqrt(low * high);

        p.bounds.latency_max_ns = most > 0 ? base_min(most, period * frames) : period * frames;
        r = tun_solve(&p, s);
        if (r == 0) {
            take(t, s, ret);
        }
        if (r == 0 && s->outcome.bottleneck_ns <= period) {
            high = period;
        } else {
            low = period;
        }
    }
    return base_min(r, 0);
}

static void say_short(const struct tun_problem *p, enum tun_short missing, char ret[TUN_ERROR_MAX])
{
    double all = tun_segment_memory(p, 0, 0, p->unit_count - 1), weights = 0, room = 0;

    snprintf(ret, TUN_ERROR_MAX, "%s", tun_short_texts[missing]);
    for (size_t b = 0; b < p->boards.count; b++) {
        room += p->boards.boards[b].memory_bytes;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        weights += p->units[u].weight_bytes;
    }
    if (missing == TUN_SHORT_MEMORY) {
        base_append(ret, TUN_ERROR_MAX,
                    ", %.0f MiB together: weights take %.0f MiB, and frames %.0f MiB on a board",
                    room / MIB, weights / MIB, (all - weights) / MIB);
    }
}

static int solve(const struct dmn_spread_table *t, struct dmn_spread_answer *ret)
{
    base_autofree struct tun_solution *s = calloc(1, sizeof(*s));
    int r = s ? tun_solve(&t->p, s) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    if (s->plan.stage_count == 0) {
        say_short(&t->p, s->missing, ret->limit);
        return 0;
    }
    take(t, s, ret);
    if (t->p.objective == TUN_THROUGHPUT) {
        r = shorten(t, s, ret);
    }
    if (r < 0 || !ret->best.possible) {
        snprintf(ret->limit, sizeof(ret->limit), "boards that would have to are not linked");
        return r;
    }
    tun_plan_text(&t->p, &ret->plan, ret->text);
    r = dmn_plan_hops(t, &ret->plan, ret->hop, &ret->hop_count);
    if (r == 0 && ret->hop_count > 0) {
        /* as the present route is judged: boards decide themselves how they compute their units */
        return dmn_spread_judge(t, ret->hop, ret->hop_count, &ret->best);
    }
    ret->hop_count = 0;
    ret->best.possible = false;
    snprintf(ret->limit, sizeof(ret->limit), "no route is faster than this board alone");
    return r == -ENOSPC ? 0 : r;
}

/* Solves on the table, and judges the present route. */
static int run_on(const struct dmn_spread_table *t, const struct dmn_spread_query *q,
                  struct dmn_spread_answer *ret)
{
    int r = q->here_sleeps ? 0 : judge_alone(t, &ret->alone);

    if (!r && t->p.boards.count > 1) {
        r = solve(t, ret);
    } else if (!r) {
        snprintf(ret->limit, sizeof(ret->limit), "no other board is there");
    }
    if (!r && t->p.boards.count > 1 && q->hop_count > 0 &&
        dmn_spread_judge(t, q->hop, q->hop_count, &ret->present) == -ENOMEM) {
        r = -ENOMEM;
    }
    return r;
}

int dmn_spread_query_run(const struct dmn_spread_query *q, struct dmn_spread_answer *ret)
{
    base_cleanup(dmn_spread_table_deinit) struct dmn_spread_table t;
    struct dmn_spread_inputs in = inputs_of(q);
    int r = dmn_spread_table_init(&in, &t);

    memset(ret, 0, sizeof(*ret));
    return r ? r : run_on(&t, q, ret);
}

/* ---- why ---- */

static bool in_hops(const struct brd_hop *hop, size_t count, const char *print)
{
    for (size_t h = 0; h < count; h++) {
        for (size_t b = 0; b < hop[h].board_count; b++) {
            if (strcmp(hop[h].board[b].print, print) == 0) {
                return true;
            }
        }
    }
    return false;
}

static const char *why_left_out(const struct dmn_spread_query *q, const struct dmn_spread_table *t,
                                size_t i)
{
    struct dmn_spread_inputs in = inputs_of(q);
    const struct brd_state *s = &q->report.board[i];

    if (!s->up) {
        return "It is away.";
    }
    if (!s->known || s->ep_count == 0) {
        return "It has not told of its cores yet.";
    }
    if (!q->may.usable[i]) {
        return "It is there, but it was away, or a route failed there, a short time ago; it must "
               "stay for a while first.";
    }
    if (!dmn_spread_linked(&in, q->report.self.print, s->print)) {
        return "Frames cannot go there and back: the link is down, or a route failed at it.";
    }
    if (dmn_spread_board(t, s->print) == t->p.boards.count) {
        return "It is planned for 8 boards, and for so many cores, at most.";
    }
    return "By the table no route is better with it.";
}

static void find_left_out(const struct dmn_spread_query *q, const struct dmn_spread_table *t,
                          struct dmn_explained *ret)
{
    for (size_t i = 0; i < q->report.board_count; i++) {
        const char *print = q->report.board[i].print;

        if (!in_hops(ret->answer.hop, ret->answer.hop_count, print)) {
            struct dmn_left_out *l = &ret->left[ret->left_count++];

            memcpy(l->print, print, sizeof(l->print));
            l->why = why_left_out(q, t, i);
        }
    }
}

static enum dmn_verdict judge(const struct dmn_spread_query *q, const struct dmn_spread_answer *a,
                              bool moves)
{
    if (q->hop_count > 0 && a->best.possible &&
        dmn_hops_same(q->hop, q->hop_count, a->hop, a->hop_count)) {
        return DMN_VERDICT_SERVES;
    }
    if (!a->best.possible && q->hop_count == 0) {
        return DMN_VERDICT_NONE;
    }
    switch (dmn_decide_worth(&q->here, &a->best, &a->present, &a->alone, q->hop_count > 0, moves)) {
    case DMN_TAKE_ROUTE:
        return DMN_VERDICT_BETTER;
    case DMN_TAKE_NONE:
        return DMN_VERDICT_ALONE_BETTER;
    default:
        return q->hop_count > 0 ? DMN_VERDICT_LITTLE : DMN_VERDICT_ALONE;
    }
}

int dmn_spread_explain(const struct dmn_spread_query *q, struct dmn_explained *ret)
{
    base_cleanup(dmn_spread_table_deinit) struct dmn_spread_table t;
    struct dmn_spread_inputs in = inputs_of(q);
    int r = dmn_spread_table_init(&in, &t);

    memset(ret, 0, sizeof(*ret));
    r = r ? r : run_on(&t, q, &ret->answer);
    if (r) {
        return r;
    }
    ret->guessed_links = t.guessed_links;
    ret->moves = dmn_hops_load(q->hop, q->hop_count, ret->answer.hop, ret->answer.hop_count);
    ret->verdict = judge(q, &ret->answer, ret->moves);
    find_left_out(q, &t, ret);
    return 0;
}

/* ---- the front ---- */

/* Leaves out plans over links that are not there. */
static void drop_gaps(struct dmn_spread_front *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++) {
        if (!dmn_spread_crosses_gap(&f->t.p, &f->solution[i].plan)) {
            f->solution[kept++] = f->solution[i];
        }
    }
    f->count = kept;
}

static int solve_front(size_t max, struct dmn_spread_front *f)
{
    struct tun_problem p = f->t.p; /* borrows */
    int r;

    if (p.bounds.period_max_ns <= 0 && dmn_spread_any_gap(&p, UINT32_MAX, UINT32_MAX)) {
        p.bounds.period_max_ns = DMN_LINK_GAP_NS_PER_BYTE * GAP_BYTES;
    }
    f->solution = calloc(max, sizeof(*f->solution));
    r = f->solution ? tun_boards_front(&p, max, f->solution, &f->count, &f->exact) : -ENOMEM;
    if (r == 0) {
        drop_gaps(f);
    }
    return r < 0 ? r : r > 0 || f->count == 0 ? -ENOENT : 0;
}

int dmn_spread_front(const struct dmn_spread_query *q, size_t max, struct dmn_spread_front *ret)
{
    struct dmn_spread_inputs in = inputs_of(q);
    struct dmn_spread_front f = DMN_SPREAD_FRONT_NULL;
    int r = dmn_spread_table_init(&in, &f.t);

    if (!r) {
        r = f.t.p.boards.count > 1 ? solve_front(max, &f) : -ENODATA;
    }
    if (r) {
        dmn_spread_front_deinit(&f);
        return r;
    }
    *ret = f;
    return 0;
}

void dmn_spread_front_deinit(struct dmn_spread_front *f)
{
    dmn_spread_table_deinit(&f->t);
    free(f->solution);
    *f = DMN_SPREAD_FRONT_NULL;
}

int dmn_spread_front_texts(const struct dmn_spread_front *f, size_t i,
                           const struct brd_link_report_all *r, char *ret_plan, char *ret_route)
{
    base_autofree struct brd_hop *hop = calloc(BRD_HOPS_MAX, sizeof(*hop));
    const struct pl_plan *plan = &f->solution[i].plan;
    size_t count = 0;

    if (!hop) {
        return -ENOMEM;
    }
    tun_plan_text(&f->t.p, plan, ret_plan);
    if (dmn_plan_hops(&f->t, plan, hop, &count) != 0) {
        count = 0;
    }
    dmn_hops_text(hop, count, r, ret_route);
    return 0;
}
