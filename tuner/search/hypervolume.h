/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/search/hypervolume.h - how much a set of points dominates: one figure for a whole front */
#pragma once

#include <stddef.h>

/**
 * tun_hypervolume() - the volume of what the points dominate within @reference, exactly
 * @points: [count][dimensions], less is better; those that do not beat @reference in every
 * dimension count nothing. @dimensions: 2 or 3. @reference: [dimensions].
 *
 * Two dimensions: a sweep. Three: slabs between the points by their last dimension, each with the
 * area of the points below it (Fonseca et al. 2006, section III, without its tree: O(n^2)).
 * Threads: any; allocates. Return: 0; -EINVAL; -ENOMEM.
 */
int tun_hypervolume(const double *points, size_t count, size_t dimensions, const double *reference,
                    double *ret);
