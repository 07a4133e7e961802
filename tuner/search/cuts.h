/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/cuts.h - Pipe-search's order of configurations: by how evenly they cut the weights
 *
 * CV = sigma(W) / mu(W), W the stages' summed weights (eq. 3). For a given number of stages the
 * mean is fixed, so the least CV is the least sum of squared stage weights. That sum is kept in
 * whole numbers here, without rounding: equal configurations are equal, and the lazy order and the
 * database's are the same to the last one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pipeline/plan.h"

/**
 * All ways to cut a chain into 1..stages_max stages, each stage count a series of its own: least CV
 * first, ties by cuts from left to right (of two configurations the one whose first different stage
 * has fewer units comes first); lazily, so that only what was looked at is stored, and what the
 * series have in common once. Weights are finite and >= 0. Weights that are whole, or whole
 * multiples of the least one's 1/1 to 1/1000 within a few roundings, are taken as such; others are
 * rounded to 2^-46 of the greatest.
 *
 * The k best paths by recursive enumeration (Jimenez, Marzal 1999) over the exact table of the best
 * rests: O(stages * units) for each next, O(stages_max * units * log units) before the first.
 * One thread at a time.
 */
struct tun_cuts;
/** tun_cuts_new() - @weight: [units], not needed afterwards. Return: 0, -EINVAL (stages_max is 0,
 * above units or above PL_STAGE_MAX; units above UINT16_MAX; a weight is negative or not finite),
 * -ENOMEM. */
int tun_cuts_new(const double *weight, size_t units, size_t stages_max, struct tun_cuts **ret);
/** tun_cuts_next() - the next of @stages (1..stages_max) stages. @ret_layers: [stages].
 * Return: 0, TUN_E_DONE (tuner/search/search.h) after the last, -EINVAL, -ENOMEM (may be called
 * again: nothing is left out). */
int tun_cuts_next(struct tun_cuts *c, size_t stages, uint16_t *ret_layers);
struct tun_cuts *tun_cuts_free(struct tun_cuts *c);

/** tun_cuts_sorted() - the paper's database: every cut into @stages generated, then sorted by CV;
 * the order is that of tun_cuts_next(). @ret: [*ret_count][stages], owned by the caller (free).
 * Nothing interrupts it: TUN_DATABASE_MAX keeps it at about a second.
 * Return: 0, -EINVAL (as tun_cuts_new()), -E2BIG above TUN_DATABASE_MAX cuts, -ENOMEM. */
#define TUN_DATABASE_MAX 2000000u
int tun_cuts_sorted(const double *weight, size_t units, size_t stages, uint16_t **ret,
                    size_t *ret_count);
