/* SPDX-License-Identifier: Apache-2.0 */
/* Every plan of a space, one after the other. */
#include "tuner/search/draw.h"

#include "base/base.h"

enum tun_space tun_papers_space(const struct tun_problem *p, const struct tun_options *o)
{
    if (o && o->space != TUN_SPACE_DEFAULT) {
        return o->space;
    }
    return p->bounds.stages_max >= tun_core_count(p) ? TUN_SPACE_PLACES : TUN_SPACE_PIPELINES;
}

void tun_plans_init(struct tun_plans *e, const struct tun_problem *p, enum tun_space space)
{
    bool one_team = space != TUN_SPACE_ALL || p->bounds.one_ep_stages;

    *e = (struct tun_plans){.problem = p, .cuts_only = space == TUN_SPACE_CUTS};
    e->stages_max = tun_stages_max(p);
    e->stages_min = space == TUN_SPACE_CUTS ? base_min(e->stages_max, (size_t)2) : 1;
    e->width_max = space == TUN_SPACE_PLACES ? 1 : PL_CPU_MAX;
    e->count_max = one_team ? 1 : PL_CPU_MAX;
    e->group_max = one_team ? 1 : TUN_GROUP_MAX;
    e->teams_left = PL_TEAM_MAX;
    for (size_t k = 0; k < p->ep_count; k++) {
        e->left[k] = p->eps[k].cores;
    }
}

/* The first team shape after (EP, width), by EP, then width, that the cores left allow. */
static bool shape_after(const struct tun_plans *e, size_t ep, size_t width, struct pl_group *ret)
{
    for (size_t k = ep; k < e->problem->ep_count; k++) {
        size_t w = k == ep ? width + 1 : 1;

        if (w <= e->left[k] && w <= e->width_max) {
            *ret = (struct pl_group){.ep = (uint16_t)k, .width = (uint16_t)w, .count = 1};
            return true;
        }
    }
    return false;
}

static void take(struct tun_plans *e, const struct pl_group *g, size_t count)
{
    e->left[g->ep] -= (size_t)g->width * count;
    e->teams_left -= count;
}

static void give_back(struct tun_plans *e, const struct pl_group *g)
{
    e->left[g->ep] += (size_t)g->width * g->count;
    e->teams_left += g->count;
}

/* The next set of teams of a stage: lists of shapes in rising order, a list before the longer ones
 * that begin with it. Return: false after the last; the stage then holds no cores. */
static bool next_teams(struct tun_plans *e, struct pl_stage_plan *s)
{
    struct pl_group *g = s->group_count ? &s->groups[s->group_count - 1] : NULL;
    struct pl_group more;

    if (s->group_count < e->group_max && e->teams_left > 0 &&
        shape_after(e, g ? g->ep : 0, g ? g->width : 0, &more)) {
        s->groups[s->group_count++] = more;
        take(e, &more, 1);
        return true;
    }
    for (; s->group_count > 0; s->group_count--) {
        g = &s->groups[s->group_count - 1];
        if (g->count < e->count_max && e->left[g->ep] >= g->width && e->teams_left > 0) {
            g->count++;
            take(e, g, 1);
            return true;
        }
        give_back(e, g);
        if (shape_after(e, g->ep, g->width, &more)) {
            *g = more;
            take(e, g, 1);
            return true;
        }
    }
    return false;
}

/* One more stage at the end, with the first set of teams; there are cores for it. */
static void push_stage(struct tun_plans *e, size_t first)
{
    struct pl_stage_plan *s = &e->plan.stages[e->plan.stage_count++];

    *s = (struct pl_stage_plan){.first_unit = (uint16_t)first,
                                .last_unit = (uint16_t)(e->problem->unit_count - 1)};
    next_teams(e, s);
}

/* Every stage begins as the last one, with all units that are left, gives them one by one to
 * stages behind it and then tries its next teams. So every step is a plan: no dead ends. */
static bool next_stages(struct tun_plans *e)
{
    struct pl_plan *p = &e->plan;

    while (p->stage_count > 0) {
        struct pl_stage_plan *s = &p->stages[p->stage_count - 1];
        struct pl_group any;

        if (s->last_unit > s->first_unit && p->stage_count < e->stages_max && e->teams_left > 0 &&
            shape_after(e, 0, 0, &any)) {
            s->last_unit--;
            push_stage(e, (size_t)s->last_unit + 1);
            return true;
        }
        if (next_teams(e, s)) {
            s->last_unit = (uint16_t)(e->problem->unit_count - 1);
            return true;
        }
        p->stage_count--;
    }
    return false;
}

/* The first cut into @stages stages: one unit each, the rest to the last. */
static void first_cut(struct tun_plans *e, size_t stages)
{
    struct tun_pipeline line = {.stage_count = stages};

    for (size_t s = 0; s < stages; s++) {
        line.layers[s] = 1;
    }
    line.layers[stages - 1] = (uint16_t)(e->problem->unit_count - stages + 1);
    tun_slots(e->problem, stages, line.places);
    tun_pipeline_plan(&line, &e->plan);
}

static void set_border(struct pl_plan *p, size_t stage, size_t last)
{
    p->stages[stage].last_unit = (uint16_t)last;
    p->stages[stage + 1].first_unit = (uint16_t)(last + 1);
}

static bool next_cut(struct tun_plans *e)
{
    struct pl_plan *p = &e->plan;

    for (size_t s = p->stage_count - 1; s-- > 0;) {
        size_t last = (size_t)p->stages[s].last_unit + 1;

        if (last + (p->stage_count - 1 - s) <= e->problem->unit_count - 1) {
            for (; s + 1 < p->stage_count; s++) {
                set_border(p, s, last++);
            }
            return true;
        }
    }
    if (p->stage_count == e->stages_max) {
        return false;
    }
    first_cut(e, p->stage_count + 1);
    return true;
}

int tun_plans_next(struct tun_plans *e, struct pl_plan *ret)
{
    bool more = true;

    if (e->begun) {
        more = e->cuts_only ? next_cut(e) : next_stages(e);
    } else if (e->cuts_only) {
        first_cut(e, e->stages_min);
    } else {
        push_stage(e, 0);
    }
    e->begun = true;
    if (!more) {
        return TUN_E_DONE;
    }
    *ret = e->plan;
    return 0;
}
