/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan needs and has: teams, cores, nodes, frames at once. */
#include "base/base.h"
#include "pipeline/plan.h"

_Static_assert(sizeof(struct pl_group) == 4 * sizeof(uint16_t) + PL_ALSO_MAX * 2,
               "compared as bytes");

bool pl_plan_equal(const struct pl_plan *a, const struct pl_plan *b)
{
    if (a->stage_count != b->stage_count) {
        return false;
    }
    for (size_t i = 0; i < a->stage_count; i++) {
        const struct pl_stage_plan *s = &a->stages[i], *t = &b->stages[i];

        if (s->first_unit != t->first_unit || s->last_unit != t->last_unit ||
            s->share != t->share || s->group_count != t->group_count ||
            memcmp(s->groups, t->groups, s->group_count * sizeof(s->groups[0])) != 0) {
            return false;
        }
    }
    return true;
}

size_t pl_plan_routes(const struct pl_plan *p)
{
    size_t routes = 0;

    for (size_t i = 0; i < p->stage_count; i++) {
        routes += p->stages[i].first_unit == 0;
    }
    return routes;
}

size_t pl_route_end(const struct pl_plan *p, size_t first)
{
    size_t end = first + 1;

    while (end < p->stage_count && p->stages[end].first_unit > 0) {
        end++;
    }
    return end;
}

double pl_route_part(const struct pl_plan *p, size_t stage)
{
    while (p->stages[stage].first_unit > 0) {
        stage--;
    }
    return p->stages[stage].share ? (double)p->stages[stage].share / PL_SHARE_ALL : 1;
}

size_t pl_plan_batched(const struct pl_plan *p)
{
    size_t frames = 0;

    for (size_t i = 0; i < p->stage_count; i++) {
        const struct pl_stage_plan *s = &p->stages[i];

        for (size_t g = 0; g < s->group_count; g++) {
            frames += s->groups[g].more ? s->groups[g].count * pl_group_batch(&s->groups[g]) : 0;
        }
    }
    return frames;
}

size_t pl_stage_teams(const struct pl_stage_plan *s)
{
    size_t teams = 0;

    for (size_t g = 0; g < s->group_count; g++) {
        teams += s->groups[g].count;
    }
    return teams;
}

size_t pl_plan_teams(const struct pl_plan *p)
{
    size_t teams = 0;

    for (size_t i = 0; i < p->stage_count; i++) {
        teams += pl_stage_teams(&p->stages[i]);
    }
    return teams;
}

size_t pl_plan_cores(const struct pl_plan *p, size_t ep)
{
    size_t most = 0, cores = 0;

    for (size_t i = 0; i < p->stage_count; i++) {
        const struct pl_stage_plan *s = &p->stages[i];

        cores = s->first_unit == 0 ? 0 : cores;
        for (size_t g = 0; g < s->group_count; g++) {
            cores += pl_group_on(&s->groups[g], ep) * s->groups[g].count;
        }
        most = base_max(most, cores);
    }
    return most;
}

uint64_t pl_stage_nodes(const struct pl_stage_plan *stage, const struct pl_ep_set *eps, uint32_t of)
{
    uint64_t nodes = 0;

    for (size_t ep = 0; ep < eps->count; ep++) {
        bool used = false;

        for (size_t g = 0; g < stage->group_count; g++) {
            used |= pl_group_on(&stage->groups[g], ep) > 0;
        }
        if (!used || (of >> ep & 1) == 0) {
            continue;
        }
        if (eps->eps[ep].nodes == 0) {
            return 0;
        }
        nodes |= eps->eps[ep].nodes;
    }
    return nodes;
}

bool pl_plan_oversubscribed(const struct pl_plan *p, const struct pl_ep_set *eps)
{
    for (size_t ep = 0; ep < eps->count; ep++) {
        if (pl_plan_cores(p, ep) > eps->eps[ep].cpu_count) {
            return true;
        }
    }
    return false;
}
