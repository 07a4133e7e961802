/* SPDX-License-Identifier: Apache-2.0 */
/* Plans that run each shape of team which the cost table does not know. */
#include "daemon/plans/retune_private.h"

static size_t width_of(const struct tun_problem *p, size_t ep, unsigned level)
{
    return base_min((size_t)1 << level, (size_t)p->eps[ep].cores);
}

/* Return: the EP has this level: 0 is one core; the last level is the first that takes all
 * cores. */
static bool has_level(const struct tun_problem *p, size_t ep, unsigned level)
{
    return level == 0 || ((size_t)1 << (level - 1)) < p->eps[ep].cores;
}

static bool known(const struct tun_problem *p, size_t ep, size_t width)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        if (tun_cell_at(&p->costs, ep, width, u)->source < TUN_SAVED) {
            return false;
        }
    }
    return true;
}

/* Time of the whole network on one team. */
static double network_ns(const struct tun_problem *p, size_t ep, size_t width)
{
    double sum = p->handoff_ns;

    for (size_t u = 0; u < p->unit_count; u++) {
        sum += tun_cell_at(&p->costs, ep, width, u)->ns;
    }
    return sum;
}

static bool far_behind(const struct tun_problem *p, size_t ep, size_t width)
{
    double rate = 0, own = p->eps[ep].cores / network_ns(p, ep, 1);

    if (width > 1) {
        double yield = network_ns(p, ep, 1) / ((double)width * network_ns(p, ep, width));

        return p->objective == TUN_THROUGHPUT && yield < DMN_SHAPES_YIELD_MIN;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        rate += p->eps[k].cores / network_ns(p, k, 1);
    }
    return own < DMN_SHAPES_RATE_MIN * rate;
}

/* Return: teams of several threads could be worth a trial. */
static bool width_may_gain(const struct tun_problem *p, double present_ns)
{
    double rate = 0, best;

    if (p->objective != TUN_THROUGHPUT || p->bounds.latency_max_ns > 0) {
        return true;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        if (!far_behind(p, k, 1) && !known(p, k, 1)) {
            return true;
        }
        rate += p->eps[k].cores / network_ns(p, k, 1);
    }
    best = present_ns > 0 ? base_min(present_ns, 1 / rate) : 1 / rate;
    return best >
           (tun_bound_ns(p) + p->handoff_ns / (double)tun_core_count(p)) * (1 + p->bounds.slack);
}

static bool wanted(const struct dmn_shapes *s, const struct tun_problem *p, size_t ep,
                   unsigned level)
{
    size_t width = width_of(p, ep, level);

    return has_level(p, ep, level) && !(s->tried[ep] >> level & 1) && !known(p, ep, width) &&
           !far_behind(p, ep, width);
}

/* Adds the teams of one EP: as many of @width as fit, and one for each core left over. Return:
 * there was room in the plan. */
static bool add_teams(struct pl_stage_plan *stage, size_t *teams, const struct tun_problem *p,
                      size_t ep, size_t width)
{
    size_t cores = p->eps[ep].cores, count = cores / width, rest = cores % width;
    size_t groups = rest ? 2 : 1;

    if (stage->group_count + groups > PL_GROUP_MAX || *teams + count + rest > PL_TEAM_MAX) {
        return false;
    }
    stage->groups[stage->group_count++] =
        (struct pl_group){.ep = (uint16_t)ep, .width = (uint16_t)width, .count = (uint16_t)count};
    if (rest) {
        stage->groups[stage->group_count++] =
            (struct pl_group){.ep = (uint16_t)ep, .width = 1, .count = (uint16_t)rest};
    }
    *teams += count + rest;
    return true;
}

static bool level_plan(struct dmn_shapes *s, const struct tun_problem *p, unsigned level,
                       struct pl_plan *ret)
{
    struct pl_stage_plan *stage = &ret->stages[0];
    bool used[PL_EP_MAX] = {false};
    size_t teams = 0;

    memset(ret, 0, sizeof(*ret));
    ret->stage_count = 1;
    stage->last_unit = (uint16_t)(p->unit_count - 1);
    for (size_t k = 0; k < p->ep_count; k++) {
        if (wanted(s, p, k, level) && add_teams(stage, &teams, p, k, width_of(p, k, level))) {
            s->tried[k] |= 1u << level;
            used[k] = true;
        }
    }
    if (teams == 0) {
        return false;
    }
    /* the other EPs keep the frames coming; EPs far behind would hold them up */
    for (size_t k = 0; k < p->ep_count; k++) {
        if (!used[k] && !far_behind(p, k, 1)) {
            add_teams(stage, &teams, p, k, 1);
        }
    }
    return true;
}

bool dmn_shapes_next(struct dmn_shapes *s, const struct tun_problem *p, double present_ns,
                     struct pl_plan *ret)
{
    bool more = true, wide = width_may_gain(p, present_ns);

    for (unsigned level = 0; more && (level == 0 || wide); level++) {
        if (level_plan(s, p, level, ret)) {
            return true;
        }
        more = false;
        for (size_t k = 0; k < p->ep_count; k++) {
            more |= has_level(p, k, level + 1);
        }
    }
    return false;
}
