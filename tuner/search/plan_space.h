/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/plan_space.h - every plan of a space, one after the other
 *
 * The spaces are those of enum tun_space, as tun_space_size() counts them, within
 * bounds.stages_max and bounds.one_ep_stages. A stage's teams are written once: groups by EP,
 * then width. What a plan cannot hold (more than TUN_GROUP_MAX groups in a stage, more than
 * PL_TEAM_MAX teams) is left out here and counted there; it takes more than 100 cores or eight
 * EPs and widths in one stage to differ.
 * Only files of tuner/ include it.
 */
#pragma once

#include "tuner/search/places.h"
#include "tuner/search/search.h"

/* A walk through a space in a fixed order; plain data. */
struct tun_plans {
    const struct tun_problem *problem; /* borrowed */
    bool cuts_only, begun;
    size_t stages_min, stages_max, teams_left, left[PL_EP_MAX];
    uint16_t width_max, count_max, group_max;
    struct pl_plan plan; /* the last one given out */
};

/** tun_plans_init() - @space: not DEFAULT; @p: borrowed, kept as it is while the walk goes on. */
void tun_plans_init(struct tun_plans *e, const struct tun_problem *p, enum tun_space space);
/** tun_plans_next() - each plan once. Return: 0, or TUN_E_DONE after the last. */
int tun_plans_next(struct tun_plans *e, struct pl_plan *ret);
