/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/spread_query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/eval_boards.h"

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
        q->usable[i] = !in->usable || in->usable[i];
    }
    q->gap_count = base_min(in->gap_count, (size_t)DMN_DECIDE_GAPS);
    for (size_t i = 0; i < q->gap_count; i++) {
        q->gaps[i] = in->gaps[i];
    }
    if (present) {
        q->hop_count = present->hop_count;
        memcpy(q->hop, present->hop, present->hop_count * sizeof(q->hop[0]));
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

struct dmn_spread_inputs dmn_spread_query_inputs(const struct dmn_spread_query *q)
{
    return (struct dmn_spread_inputs){.here = &q->here,
                                      .report = &q->report,
                                      .past = &q->past,
                                      .usable = q->usable,
                                      .gap_count = q->gap_count,
                                      .gaps = q->gaps};
}

/* ---- hops as a plan ---- */

/* Units first..last on the EPs of one board. @ret_eps: which these are. */
static int part_of(const struct tun_problem *p, size_t board, const struct brd_hop *hop,
                   struct tun_problem *ret, uint16_t ret_eps[PL_EP_MAX])
{
    size_t units = hop->last_unit - hop->first_unit + 1, count = 0;
    struct tun_ep eps[PL_EP_MAX];
    int error;

    for (size_t k = 0; k < p->ep_count; k++) {
        if (p->eps[k].board == board) {
            eps[count] = p->eps[k];
            eps[count].board = 0;
            ret_eps[count++] = (uint16_t)k;
        }
    }
    error = tun_problem_init(ret, units, eps, count);
    if (error) {
        return error;
    }
    memcpy(ret->units, p->units + hop->first_unit, units * sizeof(*ret->units));
    ret->handoff_ns = p->handoff_ns;
    ret->handoff_ns_per_byte = p->handoff_ns_per_byte;
    for (size_t k = 0; k < count; k++) {
        for (size_t w = 1; w <= eps[k].cores; w++) {
            memcpy(tun_cell_at(&ret->costs, k, w, 0),
                   tun_cell_at(&p->costs, ret_eps[k], w, hop->first_unit),
                   units * sizeof(struct tun_cell));
        }
    }
    return 0;
}

/* Adds the stages of a board's part to @plan; a shared hop has one stage, which all join. */
static int add_part(const struct tun_problem *p, size_t board, const struct brd_hop *hop,
                    bool first, struct pl_plan *plan)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    struct tun_problem part;
    uint16_t eps[PL_EP_MAX];
    int r = best ? part_of(p, board, hop, &part, eps) : -ENOMEM;

    if (r) {
        return r;
    }
    part.bounds.stages_max = hop->board_count > 1 ? 1 : 0;
    r = tun_solve(&part, best);
    tun_problem_deinit(&part);
    for (size_t s = 0; r == 0 && s < best->plan.stage_count; s++) {
        const struct pl_stage_plan *from = &best->plan.stages[s];
        struct pl_stage_plan *to = &plan->stages[plan->stage_count - !first];

        if (first && plan->stage_count == PL_STAGE_MAX) {
            return -EINVAL;
        }
        if (first) {
            *to =
                (struct pl_stage_plan){.first_unit = (uint16_t)(from->first_unit + hop->first_unit),
                                       .last_unit = (uint16_t)(from->last_unit + hop->first_unit)};
            plan->stage_count++;
        }
        for (size_t g = 0; g < from->group_count; g++) {
            if (to->group_count == PL_GROUP_MAX) {
                return -EINVAL;
            }
            to->groups[to->group_count] = from->groups[g];
            to->groups[to->group_count++].ep = eps[from->groups[g].ep];
        }
    }
    return r < 0 ? r : r > 0 ? -EINVAL : 0;
}

static size_t board_of(const struct dmn_spread_table *t, const char *print)
{
    size_t b = 0;

    while (b < t->p.boards.count && strcmp(t->print[b], print) != 0) {
        b++;
    }
    return b;
}

/* By how much the slowest board of each stage is slower than with the best shares. */
static int lateness(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                    const struct pl_plan *plan, double late[PL_STAGE_MAX])
{
    base_autofree double(*best)[TUN_BOARD_MAX] = calloc(PL_STAGE_MAX, sizeof(*best));
    size_t h = 0;

    if (!best) {
        return -ENOMEM;
    }
    if (t->p.boards.count < 2 || tun_eval_shares(&t->p, plan, best) != 0) {
        return -EINVAL;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        double sum = 0;

        late[s] = 1;
        h += plan->stages[s].first_unit > hop[h].last_unit && h + 1 < count;
        for (size_t b = 0; b < hop[h].board_count; b++) {
            sum += hop[h].board[b].share;
        }
        for (size_t b = 0; b < hop[h].board_count && hop[h].board_count > 1; b++) {
            double ideal = best[s][board_of(t, hop[h].board[b].print)];

            late[s] = base_max(late[s], hop[h].board[b].share / sum / ideal);
        }
    }
    return 0;
}

/* The best plan with just these hops. */
static int plan_of(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                   struct pl_plan *ret, double late[PL_STAGE_MAX])
{
    size_t next = 0;

    ret->stage_count = 0;
    for (size_t h = 0; h < count; h++) {
        if (hop[h].first_unit != next || hop[h].last_unit < next ||
            hop[h].last_unit >= t->p.unit_count || hop[h].board_count == 0) {
            return -EINVAL;
        }
        next = (size_t)hop[h].last_unit + 1;
        for (size_t b = 0; b < hop[h].board_count; b++) {
            size_t board = board_of(t, hop[h].board[b].print);
            int r =
                board < t->p.boards.count ? add_part(&t->p, board, &hop[h], b == 0, ret) : -EINVAL;

            if (r) {
                return r;
            }
        }
    }
    return next == t->p.unit_count ? lateness(t, hop, count, ret, late) : -EINVAL;
}

/* ---- what a plan does ---- */

static struct dmn_figures figures(const struct tun_outcome *o)
{
    return (struct dmn_figures){true, o->bottleneck_ns, o->latency_ns, o->energy_nj};
}

int dmn_spread_judge(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                     struct dmn_figures *ret)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    base_autofree struct tun_outcome *o = calloc(1, sizeof(*o));
    double late[PL_STAGE_MAX];
    int r = plan && o ? plan_of(t, hop, count, plan, late) : -ENOMEM;

    *ret = (struct dmn_figures){0};
    if (r || tun_eval(&t->p, plan, o) != 0) {
        return r ? r : -EINVAL;
    }
    *ret = figures(o);
    for (size_t s = 0; s < plan->stage_count; s++) {
        ret->bottleneck_ns = base_max(ret->bottleneck_ns, o->stage_ns[s] * late[s]);
    }
    ret->possible = !dmn_spread_crosses_gap(&t->p, plan);
    return 0;
}

static int judge_alone(const struct dmn_spread_table *t, struct dmn_figures *ret)
{
    base_autofree struct tun_solution *s = calloc(1, sizeof(*s));
    struct tun_problem alone;
    int r = s ? dmn_spread_alone(t, &alone) : -ENOMEM;

    if (!r) {
        r = tun_solve(&alone, s);
        tun_problem_deinit(&alone);
    }
    if (r >= 0) {
        *ret = figures(&s->outcome);
    }
    return base_min(r, 0);
}

static int solve(const struct dmn_spread_table *t, struct dmn_spread_answer *ret)
{
    base_autofree struct tun_solution *s = calloc(1, sizeof(*s));
    base_autofree struct pl_ep_set *eps = calloc(1, sizeof(*eps));
    int r = s && eps ? tun_solve(&t->p, s) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    if (s->plan.stage_count == 0) {
        snprintf(ret->limit, sizeof(ret->limit), "%s", tun_short_text(s->missing));
        return 0;
    }
    if (dmn_spread_crosses_gap(&t->p, &s->plan)) {
        snprintf(ret->limit, sizeof(ret->limit), "boards that would have to are not linked");
        return 0;
    }
    tun_eps(&t->p, eps);
    pl_plan_format(&s->plan, eps, ret->text, sizeof(ret->text));
    tun_limit_text(&t->p, &s->plan, &s->outcome, ret->limit);
    ret->plan = s->plan;
    r = dmn_plan_hops(t, &s->plan, ret->hop, &ret->hop_count);
    if (r == 0 && ret->hop_count > 0) {
        ret->best = figures(&s->outcome);
    }
    return r == -ENOSPC ? 0 : r;
}

int dmn_spread_query_run(const struct dmn_spread_query *q, struct dmn_spread_answer *ret)
{
    struct dmn_spread_inputs in = dmn_spread_query_inputs(q);
    struct dmn_spread_table t;
    int r = dmn_spread_table_init(&in, &t);

    memset(ret, 0, sizeof(*ret));
    if (r) {
        return r;
    }
    r = judge_alone(&t, &ret->alone);
    if (!r && t.p.boards.count > 1) {
        r = solve(&t, ret);
    } else if (!r) {
        snprintf(ret->limit, sizeof(ret->limit), "no other board is there");
    }
    if (!r && t.p.boards.count > 1 && q->hop_count > 0 &&
        dmn_spread_judge(&t, q->hop, q->hop_count, &ret->present) == -ENOMEM) {
        r = -ENOMEM;
    }
    dmn_spread_table_deinit(&t);
    return r;
}
