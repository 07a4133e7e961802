/* SPDX-License-Identifier: Apache-2.0 */
/* What a whole plan should do, and which of two is better. */
#include "base/base.h"
#include "tuner/eval_boards.h"
#include "tuner/memory.h"

/* On one board. @busy_ns: [ep_count], zeroed: for how long a frame keeps each EP busy. */
static int eval_here(const struct tun_problem *p, const struct pl_plan *plan, double *busy_ns,
                     struct tun_outcome *ret)
{
    struct tun_outcome o = {.stage_count = plan->stage_count};
    double longest_ns = 0;
    struct tun_slowed slowed;
    bool shared;

    shared = tun_memory_slowed(p, plan, &slowed);
    for (size_t s = 0; s < plan->stage_count; s++) {
        double part = pl_route_part(plan, s);
        struct tun_teams_sum sum = {0};

        if (plan->stages[s].first_unit == 0) {
            longest_ns = base_max(longest_ns, o.latency_ns);
            o.latency_ns = 0;
        }
        if (tun_sum_teams(p, plan, s, shared ? slowed.by[s] : NULL, &o, &sum) != 0) {
            return TUN_E_UNKNOWN;
        }
        o.bottleneck_ns = base_max(o.bottleneck_ns, part * o.stage_ns[s]);
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            double ns = tun_busy_ns(p, &plan->stages[s].groups[g], sum.rate, part, busy_ns);

            o.bottleneck_ns = base_max(o.bottleneck_ns, ns);
        }
        /* share_t T_t = (1/T_t / rate) T_t = 1 / rate for every team */
        o.energy_nj += part * sum.watts / sum.rate;
    }
    o.latency_ns = base_max(o.latency_ns, longest_ns);
    *ret = o;
    return 0;
}

int tun_eval(const struct tun_problem *p, const struct pl_plan *plan, struct tun_outcome *ret)
{
    double busy_ns[PL_EP_MAX] = {0};

    return p->boards.count > 1 ? tun_eval_boards(p, plan, ret) : eval_here(p, plan, busy_ns, ret);
}

int tun_plan_busy(const struct tun_problem *p, const struct pl_plan *plan, double *ret_ns)
{
    struct tun_outcome o;

    memset(ret_ns, 0, p->ep_count * sizeof(*ret_ns));
    return eval_here(p, plan, ret_ns, &o);
}

/* Return: no visit of a board, which is stages of it that follow each other, has an EP's core
 * twice. Routes share cores. */
static bool has_cores(const struct tun_problem *p, const struct pl_plan *plan)
{
    size_t used[PL_EP_MAX] = {0};
    uint32_t before = 0;

    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];
        uint32_t mask = tun_board_mask(p, stage);

        if (mask != before || stage->first_unit == 0) {
            memset(used, 0, sizeof(used));
        }
        before = mask;
        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];

            for (size_t k = 0; k < p->ep_count; k++) {
                used[k] += group->count * pl_group_on(group, k);
                if (used[k] > p->eps[k].cores) {
                    return false;
                }
            }
        }
    }
    return true;
}

bool tun_fits(const struct tun_problem *p, const struct pl_plan *plan)
{
    if ((p->bounds.stages_max && plan->stage_count > p->bounds.stages_max) || !has_cores(p, plan)) {
        return false;
    }
    for (size_t s = 0; s < plan->stage_count && p->bounds.one_ep_stages; s++) {
        if (plan->stages[s].group_count != 1 || plan->stages[s].groups[0].count != 1) {
            return false;
        }
    }
    return p->boards.count <= 1 || tun_fits_boards(p, plan);
}

double tun_figure(const struct tun_problem *p, const struct tun_outcome *o)
{
    return p->objective == TUN_LATENCY ? o->latency_ns
           : p->objective == TUN_POWER ? o->energy_nj
                                       : o->bottleneck_ns;
}

bool tun_keeps(const struct tun_problem *p, const struct tun_outcome *o)
{
    const struct tun_bounds *b = &p->bounds;

    return (b->period_max_ns <= 0 || o->bottleneck_ns <= b->period_max_ns) &&
           (b->latency_max_ns <= 0 || o->latency_ns <= b->latency_max_ns);
}

static double over(double value, double limit)
{
    return limit > 0 ? base_max(0.0, value / limit - 1) : 0;
}

double tun_missed(const struct tun_problem *p, const struct tun_outcome *o)
{
    double missed = over(o->bottleneck_ns, p->bounds.period_max_ns) +
                    over(o->latency_ns, p->bounds.latency_max_ns);

    for (size_t b = 0; p->boards.count > 1 && b < p->boards.count; b++) {
        missed += over(o->board_energy_nj[b], p->boards.boards[b].energy_max_nj);
    }
    return missed;
}

bool tun_better(const struct tun_problem *p, const struct tun_outcome *a,
                const struct tun_outcome *b)
{
    double miss_a = tun_missed(p, a), miss_b = tun_missed(p, b);
    double figure_a = tun_figure(p, a), figure_b = tun_figure(p, b);

    if (miss_a != miss_b) {
        return miss_a < miss_b;
    }
    return figure_a != figure_b ? figure_a < figure_b : a->bottleneck_ns < b->bottleneck_ns;
}
