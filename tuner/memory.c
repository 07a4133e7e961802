/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/memory.h"

#include "base/base.h"
#include "tuner/eval.h"

#define ROUNDS 20
#define SETTLED 1e-9    /* relative change of a share that ends the iteration */
#define FEW 32          /* of more others the mean is enough (law of large numbers) */
#define SHARE_MAX 0.999 /* keeps the least probability above 0 */

bool tun_memory_competes(const struct tun_problem *p)
{
    bool moves = false, limited = p->gbytes_max > 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        limited |= p->eps[k].gbytes_max > 0;
        if (!(p->eps[k].gbytes > 0)) {
            return false;
        }
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        moves |= p->units[u].bytes > 0;
    }
    return moves && limited && p->boards.count <= 1;
}

/* What a team of @width asks of memory while it streams. */
static double demand(const struct tun_problem *p, size_t ep, size_t width)
{
    const struct tun_ep *e = &p->eps[ep];
    double most = e->gbytes_max > 0 ? e->gbytes_max : INFINITY;

    return base_min((double)width * e->gbytes, most);
}

double tun_memory_ns(const struct tun_problem *p, size_t ep, size_t width, size_t unit)
{
    double ns = tun_cell_at(&p->costs, ep, width, unit)->ns;

    return p->eps[ep].gbytes > 0 && ns > 0
               ? base_min(ns, p->units[unit].bytes / demand(p, ep, width))
               : 0;
}

double tun_memory_alone_ns(const struct tun_problem *p, size_t ep, size_t width, size_t unit,
                           double ns, double stretch)
{
    double memory_ns = p->units[unit].bytes / demand(p, ep, width);

    return ns >= stretch * memory_ns ? ns - (stretch - 1) * memory_ns : ns / stretch;
}

/* Other teams at one memory: how many, what they ask together, and what they do on average. */
struct others {
    double count, demand, active;
};

static void others_add(struct others *to, double count, double demand_each, double share)
{
    to->count += count;
    to->demand += count * demand_each;
    to->active += count * demand_each * share;
}

/* E[ max(1, (own + b each) / most) ], b binomial; of a team that is alone 1. */
static double stretch(double own, const struct others *o, double most)
{
    double each = o->count > 0 ? o->demand / o->count : 0;
    double share = o->demand > 0 ? base_min(o->active / o->demand, SHARE_MAX) : 0;
    double chance = pow(1 - share, o->count), sum = 0;

    if (!(most > 0)) {
        return 1;
    }
    most = base_max(most, own); /* its time alone has what it moves alone */
    if (o->count > FEW) {
        return base_max(1.0, (own + o->active) / most);
    }
    for (double b = 0; b <= o->count; b++) {
        sum += chance * base_max(1.0, (own + b * each) / most);
        chance *= (o->count - b) / (b + 1) * share / (1 - share);
    }
    return sum;
}

/* ---- a plan ---- */

struct team {
    size_t stage, group, ep;
    double count, ns, memory_ns, demand; /* of each of them, alone */
    double stretch, share;
};

/* Return: how many groups; 0: a cost is unknown. */
static size_t list_teams(const struct tun_problem *p, const struct pl_plan *plan, struct team *ret)
{
    size_t count = 0;

    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];

        for (size_t g = 0; g < stage->group_count && count < PL_TEAM_MAX; g++) {
            const struct pl_group *group = &stage->groups[g];
            struct team *t = &ret[count++];

            *t = (struct team){.stage = s,
                               .group = g,
                               .ep = group->ep,
                               .count = group->count,
                               .ns = tun_group_ns(p, stage->first_unit, stage->last_unit, group),
                               .demand = demand(p, group->ep, group->width),
                               .stretch = 1};
            if (!(t->ns > 0)) {
                return 0;
            }
            for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
                t->memory_ns += tun_memory_ns(p, group->ep, group->width, u) *
                                tun_at_once_factor(tun_at_once_at(p, group->ep, u),
                                                   (double)pl_group_batch(group));
            }
        }
    }
    return count;
}

static double now_ns(const struct team *t)
{
    return t->ns + t->memory_ns * (t->stretch - 1);
}

/* Shares of the wall clock, from the stretches. Return: the largest change. */
static double set_shares(struct team *teams, size_t count, size_t stage_count)
{
    double rate[PL_STAGE_MAX] = {0}, least = INFINITY, change = 0;

    for (size_t i = 0; i < count; i++) {
        rate[teams[i].stage] += teams[i].count / now_ns(&teams[i]);
    }
    for (size_t s = 0; s < stage_count; s++) {
        least = base_min(least, rate[s]);
    }
    for (size_t i = 0; i < count; i++) {
        struct team *t = &teams[i];
        double share = t->stretch * t->memory_ns / now_ns(t) * least / rate[t->stage];

        change = base_max(change, fabs(share - t->share));
        t->share = share;
    }
    return change;
}

static void set_stretches(const struct tun_problem *p, struct team *teams, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct others near = {0}, all = {0};

        for (size_t j = 0; j < count; j++) {
            const struct team *t = &teams[j];
            double others = t->count - (i == j);

            others_add(&all, others, t->demand, t->share);
            if (t->ep == teams[i].ep) {
                others_add(&near, others, t->demand, t->share);
            }
        }
        teams[i].stretch = base_max(stretch(teams[i].demand, &near, p->eps[teams[i].ep].gbytes_max),
                                    stretch(teams[i].demand, &all, p->gbytes_max));
    }
}

/* Return: how many groups, with stretch and share; 0: a cost is unknown. */
static size_t settle(const struct tun_problem *p, const struct pl_plan *plan, struct team *teams)
{
    size_t count = list_teams(p, plan, teams);

    for (int i = 0; i < ROUNDS && count > 0; i++) {
        if (set_shares(teams, count, plan->stage_count) < SETTLED) {
            break;
        }
        set_stretches(p, teams, count);
    }
    return count;
}

bool tun_memory_slowed(const struct tun_problem *p, const struct pl_plan *plan,
                       struct tun_slowed *ret)
{
    struct team teams[PL_TEAM_MAX];
    size_t count = tun_memory_competes(p) ? settle(p, plan, teams) : 0;

    for (size_t i = 0; i < count; i++) {
        ret->by[teams[i].stage][teams[i].group] = now_ns(&teams[i]) / teams[i].ns;
        ret->stretch[teams[i].stage][teams[i].group] = teams[i].stretch;
    }
    return count > 0;
}

/* ---- a table ---- */

/* How much of the time a core of each EP streams, on average. */
static void core_shares(const struct tun_problem *p, const struct pl_plan *plan,
                        double ret[PL_EP_MAX])
{
    struct team teams[PL_TEAM_MAX];
    size_t count = plan ? settle(p, plan, teams) : 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        double ns = 0, memory_ns = 0;

        for (size_t u = 0; u < p->unit_count; u++) {
            ns += tun_cell_at(&p->costs, k, 1, u)->ns;
            memory_ns += tun_memory_ns(p, k, 1, u);
        }
        ret[k] = plan || !(ns > 0) ? 0 : memory_ns / ns;
    }
    for (size_t i = 0; i < count; i++) {
        const struct team *t = &teams[i];

        ret[t->ep] +=
            t->count * t->share * t->demand / (p->eps[t->ep].gbytes * p->eps[t->ep].cores);
    }
}

int tun_memory_under(const struct tun_problem *p, const struct pl_plan *plan,
                     struct tun_problem *ret)
{
    double share[PL_EP_MAX];
    int error = tun_problem_copy(p, ret);

    if (error) {
        return error;
    }
    core_shares(p, plan, share);
    for (size_t k = 0; k < p->ep_count; k++) {
        ret->eps[k].gbytes = ret->eps[k].gbytes_max = 0;
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            struct others near = {0}, all = {0};
            double s;

            others_add(&near, (double)(p->eps[k].cores - w), p->eps[k].gbytes, share[k]);
            all = near;
            for (size_t j = 0; j < p->ep_count; j++) {
                others_add(&all, j == k ? 0 : p->eps[j].cores, p->eps[j].gbytes, share[j]);
            }
            s = base_max(stretch(demand(p, k, w), &near, p->eps[k].gbytes_max),
                         stretch(demand(p, k, w), &all, p->gbytes_max));
            for (size_t u = 0; u < p->unit_count; u++) {
                tun_cell_at(&ret->costs, k, w, u)->ns += tun_memory_ns(p, k, w, u) * (s - 1);
            }
        }
    }
    ret->gbytes_max = 0;
    return 0;
}
