/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/places.h - the papers' view of a pipeline: cuts, one place for each stage, and small
 * changes of both
 *
 * A place is `width` cores of an EP, from a single core to the whole cluster. Pipe-search and
 * Shisha share all cores among N places: see tun_slots(). In the machines C1..C6 of Shisha's paper
 * a "core" of the description stands for a whole cluster.
 */
#pragma once

#include "tuner/problem.h"
#include "tuner/search/random.h"

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
 * tun_slots() - who runs stage s of @stages when only the count is chosen (Pipe-search), and the
 * list H_e of so many places, fastest first (Shisha)
 * EPs in rank order get stages in proportion to their cores (largest remainder, at least one each
 * while there are enough stages; with fewer stages than EPs, the fastest EPs); the cores of an
 * EP are shared evenly among its stages, the first ones getting one more. So as many stages as EPs
 * have a whole EP each, as many as cores a core each. The papers leave this to the runtime and to
 * the machine. @stages: 1..cores. @ret: [stages]. Return: 0, -EINVAL.
 */
int tun_slots(const struct tun_problem *p, size_t stages, struct tun_place *ret);

/** tun_cut_weights() - Pipe-search's hints: what its cuts balance. @alike: without hints each unit
 * counts as much (section 6.2: "we just balance the number of layers per pipeline stage").
 * Return: [unit_count], owned by the caller; NULL: no memory. */
double *tun_cut_weights(const struct tun_problem *p, bool alike);

/* Counting: as doubles, exact below 2^53. */
/** tun_binomial() - n over k; 0 for k > n. */
double tun_binomial(size_t n, size_t k);
/** tun_cut_count() - ways to cut @layers into min..max stages: sum of binomial(layers-1, p-1). */
double tun_cut_count(size_t layers, size_t min, size_t max);

/* ---- small changes: what is next to what ----
 *
 * A pipeline stays one: units in order, at least one in every stage, no core given out twice, no
 * more stages than the bounds allow. Pure, no allocation. */

enum tun_move_what {
    TUN_MOVE_BORDER,  /* stage and other are neighbours: one unit goes from stage to other */
    TUN_MOVE_SWAP,    /* stage and other change places */
    TUN_MOVE_REPLACE, /* stage gets the place */
    TUN_MOVE_MERGE,   /* the units of the neighbour other join stage; its place is given up */
    TUN_MOVE_SPLIT,   /* stage gives the half of its units next to other (before it: the first
                         half) to a new stage on the place; other is stage + 1 or stage */
};
struct tun_move {
    uint8_t what;
    uint16_t stage, other;
    struct tun_place place;
};

/* Swaps 64 * 63 / 2, borders and merges 4 * 63, replacements 64 * 33, splits 64 * 32 * 2. */
#define TUN_MOVE_MAX (2016u + 252u + 2112u + 4096u)

/** tun_move_unit() - one unit of stage @from ends in stage @to: every border between moves by one
 * @from: has two units or more. */
void tun_move_unit(struct tun_pipeline *p, size_t from, size_t to);

/**
 * tun_moves() - every neighbour of a pipeline, each once
 * Borders by one unit; swaps of unlike places; a core of another EP for a stage; merges of
 * neighbours, on the place of either; splits of a stage where its weight halves best, the new
 * stage on one core of any EP that has one left, before or behind. @wide: places may have any
 * width: one core more or less as well, and the other EP with as many cores as it has up to the
 * old width.
 * Return: how many, at most TUN_MOVE_MAX; 0 for one unit on the only core.
 */
size_t tun_moves(const struct tun_problem *p, const struct tun_pipeline *from, bool wide,
                 struct tun_move ret[TUN_MOVE_MAX]);
/** tun_move_apply() - @m: of tun_moves() for this @from. */
void tun_move_apply(const struct tun_problem *p, const struct tun_pipeline *from,
                    const struct tun_move *m, struct tun_pipeline *ret);

/* ---- the seed of Shisha (Soomro et al., PPAM 2022), Algorithm 1 (shisha.c) ----
 *
 * Stages: the lightest group of units is merged with its lighter neighbour until N are left, or as
 * many as the bounds allow. Places: the list H_e of N places, by speed and memory bandwidth
 * (tun_slots()), of which the first go to the stages by the heuristic (its table 1):
 *
 *     1, 2  Rank_l: the more units a stage has, the slower its core
 *     3, 4  Rank_w: the heavier a stage, the faster its core
 *     5, 6  random
 *
 * Odd ones balance towards nlFEP, even ones towards nFEP (tuner/search/shisha.c). Weights alone are
 * read, no costs but for the ranking of EPs.
 */

/** tun_shisha_seed() - @heuristic: 1..6. @places: N, 1..tun_places_max(). @random: read for 5 and 6
 * only. The paper leaves ties open: the first of equally light groups is merged, with its left
 * neighbour where both are equally light; stages with as many units are ranked by weight, the
 * heavier on the faster place; then by position. Return: 0, or -EINVAL for another heuristic or
 * number of places. Pure, no allocation. */
int tun_shisha_seed(const struct tun_problem *p, unsigned heuristic, size_t places,
                    struct tun_random *random, struct tun_pipeline *ret);
/** tun_places_max() - Return: N where bounds.stages_max says it, else the most: a core each. */
size_t tun_places_max(const struct tun_problem *p);
