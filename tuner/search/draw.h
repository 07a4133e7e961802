/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/draw.h - the plans of a space: one after the other, drawn at random, and how many
 *
 * The spaces are those of enum tun_space, within bounds.stages_max and bounds.one_ep_stages. Only
 * files of tuner/ include it.
 */
#pragma once

#include "tuner/search/places.h"
#include "tuner/search/random.h"
#include "tuner/search/search.h"

/* ---- one after the other (plan_space.c) ----
 *
 * A stage's teams are written once: groups by EP, then width. What a plan cannot hold (more than
 * TUN_GROUP_MAX groups in a stage, more than PL_TEAM_MAX teams) is left out here and counted by
 * tun_space_size(); it takes more than 100 cores or eight EPs and widths in one stage to differ. */

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

/* ---- drawn at random (draw.c): every plan with the same probability, up to rounding ---- */

/** tun_papers_space() - Return: o->space, or that of Shisha and its rivals: PIPELINES; PLACES where
 * the bounds allow as many stages as cores, so that each core is an EP. @o: NULL: the default. */
enum tun_space tun_papers_space(const struct tun_problem *p, const struct tun_options *o);

struct tun_draw;
/** tun_draw_new() - @space: not DEFAULT. @p: borrowed until free. Return: 0 or -ENOMEM. */
int tun_draw_new(const struct tun_problem *p, enum tun_space space, struct tun_draw **ret);
/** tun_draw_next() - a plan; where nearly all of ALL pass what a plan can hold,
 * the cores are shared by stage count as tun_slots() does. */
void tun_draw_next(const struct tun_draw *d, struct tun_random *r, struct pl_plan *ret);
struct tun_draw *tun_draw_free(struct tun_draw *d);

/**
 * tun_space_size() - plans in TUN_SPACE_CUTS (2..cores stages; with one core or one unit the one
 * plan there is), _PLACES (1..cores stages, one core each, EPs in any order), _PIPELINES or _ALL
 * @space: not DEFAULT. Stages are bounded by units, PL_STAGE_MAX and the problem's stages_max;
 * one_ep_stages is kept. _ALL counts a stage by its multiset of (EP, width); stages of more than
 * TUN_GROUP_MAX shapes (45 cores of one EP, 25 of two, 18 of three at the least) and more than
 * PL_TEAM_MAX teams are counted though no plan can hold them. Exact below 2^53; infinite where no
 * double holds it, or without memory. Any thread.
 */
double tun_space_size(const struct tun_problem *p, enum tun_space space);
