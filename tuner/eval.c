/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/eval.h"

#include "base/base.h"
#include "tuner/eval_boards.h"

/* A stage's period, slowest team and energy. Return: 0 or TUN_E_UNKNOWN. */
static int eval_stage(const struct tun_problem *p, const struct pl_stage_plan *stage,
                      double ret_team_ns[PL_GROUP_MAX], double *ret_slowest, double *ret_nj,
                      double *ret_period)
{
    double rate = 0, slowest = 0, core_watts = 0;

    for (size_t g = 0; g < stage->group_count; g++) {
        const struct pl_group *group = &stage->groups[g];
        double ns = tun_group_ns(p, stage->first_unit, stage->last_unit, group);

        if (ns <= 0) {
            return TUN_E_UNKNOWN;
        }
        ret_team_ns[g] = ns;
        rate += group->count / ns;
        slowest = base_max(slowest, tun_latency_of(p, pl_group_batch(group), ns));
        /* share_t T_t = (1/T_t / rate) T_t = 1 / rate for every team */
        core_watts += group->count * group->width * tun_ep_watts(&p->eps[group->ep]);
    }
    *ret_period = 1 / rate;
    *ret_slowest = slowest;
    *ret_nj = core_watts / rate;
    return 0;
}

int tun_eval(const struct tun_problem *p, const struct pl_plan *plan, struct tun_outcome *ret)
{
    struct tun_outcome o = {.stage_count = plan->stage_count};

    if (p->boards.count > 1) {
        return tun_eval_boards(p, plan, ret);
    }

    for (size_t s = 0; s < plan->stage_count; s++) {
        double slowest, nj;

        if (eval_stage(p, &plan->stages[s], o.team_ns[s], &slowest, &nj, &o.stage_ns[s])) {
            return TUN_E_UNKNOWN;
        }
        o.bottleneck_ns = base_max(o.bottleneck_ns, o.stage_ns[s]);
        o.latency_ns += slowest;
        o.energy_nj += nj;
    }
    *ret = o;
    return 0;
}

bool tun_fits(const struct tun_problem *p, const struct pl_plan *plan)
{
    if (p->bounds.stages_max && plan->stage_count > p->bounds.stages_max) {
        return false;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        if (pl_plan_cores(plan, k) > p->eps[k].cores) {
            return false;
        }
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

/* By how much an outcome misses the bounds, relatively; 0: it keeps them. */
static double missed(const struct tun_problem *p, const struct tun_outcome *o)
{
    double miss = 0;

    if (p->bounds.period_max_ns > 0) {
        miss += base_max(0.0, o->bottleneck_ns / p->bounds.period_max_ns - 1);
    }
    if (p->bounds.latency_max_ns > 0) {
        miss += base_max(0.0, o->latency_ns / p->bounds.latency_max_ns - 1);
    }
    for (size_t b = 0; p->boards.count > 1 && b < p->boards.count; b++) {
        if (p->boards.boards[b].energy_max_nj > 0) {
            miss += base_max(0.0, o->board_energy_nj[b] / p->boards.boards[b].energy_max_nj - 1);
        }
    }
    return miss;
}

bool tun_better(const struct tun_problem *p, const struct tun_outcome *a,
                const struct tun_outcome *b)
{
    double miss_a = missed(p, a), miss_b = missed(p, b);
    double figure_a = tun_figure(p, a), figure_b = tun_figure(p, b);

    if (miss_a != miss_b) {
        return miss_a < miss_b;
    }
    return figure_a != figure_b ? figure_a < figure_b : a->bottleneck_ns < b->bottleneck_ns;
}
