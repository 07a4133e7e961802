/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/places.h - the papers' view of a pipeline: cuts, and one place for each stage
 *
 * A place is `width` cores of an EP. In Shisha a place is a single core; in the machines C1..C6 of
 * its paper a "core" of the description stands for a whole cluster. Pipe-search shares all cores
 * among the stages: see tun_slots().
 */
#pragma once

#include "tuner/problem.h"

/* A pipeline as the papers write it: stage s has layers[s] units and runs on places[s]. */
struct tun_place {
    uint16_t ep, width;
};
struct tun_pipeline {
    size_t stage_count;
    uint16_t layers[PL_STAGE_MAX]; /* >= 1 each */
    struct tun_place places[PL_STAGE_MAX];
};

/** tun_pipeline_plan() - as a plan: stage s is places[s] with one team. */
void tun_pipeline_plan(const struct tun_pipeline *p, struct pl_plan *ret);

/** tun_rank_eps() - EP indices, fastest first: by speed, then bandwidth, then more cores, then
 * order. Where all costs of width 1 are known the speed is that of the whole network. */
void tun_rank_eps(const struct tun_problem *p, size_t ret[PL_EP_MAX]);

/**
 * tun_slots() - Pipe-search: who runs stage s of @stages when only the count is chosen
 * EPs in rank order get stages in proportion to their cores (largest remainder, at least one each
 * while there are enough stages; with fewer stages than EPs, the fastest EPs); the cores of an
 * EP are shared evenly among its stages, the first ones getting one more. The paper leaves this
 * to its runtime. @stages: 1..cores. @ret: [stages]. Return: 0, -EINVAL.
 */
int tun_slots(const struct tun_problem *p, size_t stages, struct tun_place *ret);

/** tun_core_places() - Shisha's list H_e: every core a place of width 1, fastest first; at most
 * @max. Return: how many. */
size_t tun_core_places(const struct tun_problem *p, struct tun_place *ret, size_t max);

/* Counting: as doubles, exact below 2^53. */
/** tun_binomial() - n over k; 0 for k > n. */
double tun_binomial(size_t n, size_t k);
/** tun_cut_count() - ways to cut @layers into min..max stages: sum of binomial(layers-1, p-1). */
double tun_cut_count(size_t layers, size_t min, size_t max);
