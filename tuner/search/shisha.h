/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/shisha.h - the seed of Shisha (Soomro et al., PPAM 2022), Algorithm 1
 *
 * Stages: the lightest group of units is merged with its lighter neighbour until N are left, N the
 * least of places, units, PL_STAGE_MAX and bounds.stages_max. Places: the N fastest cores, by speed
 * and memory bandwidth (tun_core_places()), given out by the heuristic (its table 1):
 *
 *     1, 2  Rank_l: the more units a stage has, the slower its core
 *     3, 4  Rank_w: the heavier a stage, the faster its core
 *     5, 6  random
 *
 * Odd ones balance towards nlFEP, even ones towards nFEP (tuner/search/shisha.c). Weights alone are
 * read, no costs but for the ranking of EPs.
 */
#pragma once

#include "tuner/search/places.h"
#include "tuner/search/random.h"

/** tun_shisha_seed() - @heuristic: 1..6. @random: read for 5 and 6 only. The paper leaves ties
 * open: the first of equally light groups is merged, with its left neighbour where both are equally
 * light; stages with as many units are ranked by weight, the heavier on the faster core; then by
 * position. Return: 0, or -EINVAL for another heuristic. Pure, no allocation. */
int tun_shisha_seed(const struct tun_problem *p, unsigned heuristic, struct tun_random *random,
                    struct tun_pipeline *ret);
