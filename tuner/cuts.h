/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/cuts.h - Pipe-search's order of configurations: by how evenly they cut the weights
 *
 * CV = sigma(W) / mu(W), W the stages' summed weights (eq. 3). The paper's table 7 prints CV in
 * percent with one of the two standard deviations; which one, docs/tuner.md says.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pipeline/plan.h"

/** tun_cv() - @layers: [stages] units per stage, >= 1 each, of @weight [sum of layers]. */
double tun_cv(const double *weight, const uint16_t *layers, size_t stages);

/* All ways to cut @units weights into @stages, least CV first, ties by cuts from left to right;
 * lazily, best first, so that nothing is stored but the frontier. */
struct tun_cuts;
/** tun_cuts_new() - @weight: [units], borrowed until free. Return: 0, -EINVAL (stages is 0, above
 * units or above PL_STAGE_MAX), -ENOMEM. */
int tun_cuts_new(const double *weight, size_t units, size_t stages, struct tun_cuts **ret);
/** tun_cuts_next() - @ret_layers: [stages]. Return: 0, TUN_E_DONE (tuner/search.h) after the last,
 * -ENOMEM. */
int tun_cuts_next(struct tun_cuts *c, uint16_t *ret_layers);
struct tun_cuts *tun_cuts_free(struct tun_cuts *c);

/** tun_cuts_sorted() - the paper's database: every cut generated, then sorted by CV.
 * @ret: [*ret_count][stages], owned by the caller (free). Return: 0, -EINVAL, -E2BIG above
 * TUN_DATABASE_MAX cuts, -ENOMEM. */
#define TUN_DATABASE_MAX 20000000u
int tun_cuts_sorted(const double *weight, size_t units, size_t stages, uint16_t **ret,
                    size_t *ret_count);
