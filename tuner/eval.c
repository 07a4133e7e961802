/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/eval.h"

#include "base/base.h"
#include "tuner/span.h"

#define ROUNDING 1e-12

double tun_frames_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep,
                     size_t width, double frames)
{
    double ns = tun_handoff_ns(p, first);

    for (size_t u = first; u <= last; u++) {
        double cost = tun_cell_at(&p->costs, ep, width, u)->ns;

        if (cost < 0) {
            return -1;
        }
        ns += frames > 1 ? cost * tun_at_once_factor(tun_at_once_at(p, ep, u), frames) : cost;
    }
    return ns;
}

double tun_team_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep, size_t width)
{
    return tun_frames_ns(p, first, last, ep, width, 1);
}

/* As tun_frames_ns(), of a team over several EPs. Return: < 0: a cost is unknown. */
static double span_frames_ns(const struct tun_problem *p, size_t first, size_t last,
                             const struct pl_group *group, double frames)
{
    double ns = tun_handoff_ns(p, first);

    for (size_t u = first; u <= last; u++) {
        double cost = tun_span_ns(p, group, u);

        if (cost < 0) {
            return -1;
        }
        ns += cost * tun_at_once_factor(tun_at_once_at(p, group->ep, u), frames);
    }
    return ns;
}

double tun_group_ns(const struct tun_problem *p, size_t first, size_t last,
                    const struct pl_group *group)
{
    double frames = (double)pl_group_batch(group);

    return pl_group_spans(group) ? span_frames_ns(p, first, last, group, frames)
                                 : tun_frames_ns(p, first, last, group->ep, group->width, frames);
}

double tun_latency_of(const struct tun_problem *p, size_t frames, double ns)
{
    return frames > 1 ? p->batch_wait_ns + (double)frames * ns : ns;
}

int tun_sum_teams(const struct tun_problem *p, const struct pl_plan *plan, size_t s,
                  const double *slowed, struct tun_outcome *o, struct tun_teams_sum *sums)
{
    const struct pl_stage_plan *stage = &plan->stages[s];
    double slowest = 0, rate = 0;

    for (size_t g = 0; g < stage->group_count; g++) {
        const struct pl_group *group = &stage->groups[g];
        const struct tun_ep *ep = &p->eps[group->ep];
        struct tun_teams_sum *sum = &sums[p->boards.count > 1 ? ep->board : 0];
        double ns = tun_group_ns(p, stage->first_unit, stage->last_unit, group);

        if (ns <= 0) {
            return TUN_E_UNKNOWN;
        }
        ns *= slowed ? slowed[g] : 1;
        o->team_ns[s][g] = ns;
        rate += group->count / ns;
        sum->rate += group->count / ns;
        sum->watts += group->count * tun_group_watts(p, group);
        slowest = base_max(slowest, tun_latency_of(p, pl_group_batch(group), ns));
    }
    o->latency_ns += slowest;
    o->stage_ns[s] = 1 / rate;
    return 0;
}

double tun_busy_ns(const struct tun_problem *p, const struct pl_group *group, double rate,
                   double share, double *busy_ns)
{
    double longest = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        double cores = (double)(group->count * pl_group_on(group, k));

        if (cores > 0) {
            busy_ns[k] += share * cores / (p->eps[k].cores * rate);
            longest = base_max(longest, busy_ns[k]);
        }
    }
    return longest * (1 - ROUNDING);
}
