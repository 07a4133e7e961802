/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/every_plan.h"

struct state {
    const struct tun_problem *p;
    void (*visit)(void *arg, const struct pl_plan *plan);
    void *arg;
    struct pl_plan plan;
    size_t group_max, left[PL_EP_MAX];
};

static void next_stage(struct state *s, size_t first);

/* Any number of teams of each shape from (EP, width) on for the stage last begun. */
static void choose_teams(struct state *s, size_t ep, size_t width, size_t next)
{
    struct pl_stage_plan *stage = &s->plan.stages[s->plan.stage_count - 1];
    uint16_t group = stage->group_count;

    if (ep == s->p->ep_count) {
        if (group > 0) {
            next_stage(s, next);
        }
        return;
    }
    if (width > s->p->eps[ep].cores) {
        choose_teams(s, ep + 1, 1, next);
        return;
    }
    choose_teams(s, ep, width + 1, next);
    if (group == s->group_max) {
        return;
    }
    for (uint16_t count = 1; count * width <= s->left[ep]; count++) {
        s->left[ep] -= count * width;
        stage->groups[group] = (struct pl_group){(uint16_t)ep, (uint16_t)width, count};
        stage->group_count = (uint16_t)(group + 1);
        choose_teams(s, ep, width + 1, next);
        stage->group_count = group;
        s->left[ep] += count * width;
    }
}

static void next_stage(struct state *s, size_t first)
{
    size_t left = 0;

    if (first == s->p->unit_count) {
        s->visit(s->arg, &s->plan);
        return;
    }
    for (size_t k = 0; k < s->p->ep_count; k++) {
        left += s->left[k];
    }
    if (left == 0) {
        return;
    }
    s->plan.stage_count++;
    for (size_t last = first; last < s->p->unit_count; last++) {
        s->plan.stages[s->plan.stage_count - 1] =
            (struct pl_stage_plan){.first_unit = (uint16_t)first, .last_unit = (uint16_t)last};
        choose_teams(s, 0, 1, last + 1);
    }
    s->plan.stage_count--;
}

void psim_every_plan(const struct tun_problem *p,
                     void (*visit)(void *arg, const struct pl_plan *plan), void *arg)
{
    struct state s = {.p = p,
                      .visit = visit,
                      .arg = arg,
                      .group_max = p->boards.count > 1 ? PL_GROUP_MAX : TUN_GROUP_MAX};

    for (size_t k = 0; k < p->ep_count; k++) {
        s.left[k] = p->eps[k].cores;
    }
    next_stage(&s, 0);
}
