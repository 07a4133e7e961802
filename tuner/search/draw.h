/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/draw.h - plans drawn at random from a space of tuner/search/plan_space.h
 *
 * Every plan of the space has the same probability, up to the rounding of doubles. Only files of
 * tuner/ include it.
 */
#pragma once

#include "tuner/search/places.h"
#include "tuner/search/random.h"
#include "tuner/search/search.h"

struct tun_draw;
/** tun_draw_new() - @space: not DEFAULT. @p: borrowed until free. Return: 0 or -ENOMEM. */
int tun_draw_new(const struct tun_problem *p, enum tun_space space, struct tun_draw **ret);
/** tun_draw_next() - a plan; where nearly all of ALL pass what a plan can hold
 * (tuner/search/plan_space.h), the cores are shared by stage count as tun_slots() does. */
void tun_draw_next(const struct tun_draw *d, struct tun_random *r, struct pl_plan *ret);
struct tun_draw *tun_draw_free(struct tun_draw *d);

/**
 * tun_space_size() - plans in TUN_SPACE_CUTS (2..cores stages; with one core or one unit the one
 * plan there is), _PLACES (1..cores stages, one core each, EPs in any order) or _ALL
 * @space: not DEFAULT. Stages are bounded by units, PL_STAGE_MAX and the problem's stages_max;
 * one_ep_stages is kept. _ALL counts a stage by its multiset of (EP, width); stages of more than
 * TUN_GROUP_MAX shapes (45 cores of one EP, 25 of two, 18 of three at the least) and more than
 * PL_TEAM_MAX teams are counted though no plan can hold them. Exact below 2^53; infinite where no
 * double holds it, or without memory. Any thread.
 */
double tun_space_size(const struct tun_problem *p, enum tun_space space);
