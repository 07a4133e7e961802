/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/calibrate_kl.h - where to clip a distribution that is told in 128 steps
 *
 * Source: S. Migacz, "8-bit Inference with TensorRT", GTC 2017.
 */
#pragma once

#include <stdint.h>

#define KRN_KL_BINS 2048u

/**
 * krn_kl_widen() - makes room for numbers up to @most > 0
 * @bins: [KRN_KL_BINS] counts of |x| in equal steps up to *@limit, all 0 while that is 0. The limit
 * doubles until it reaches @most; neighbours are then counted together.
 */
void krn_kl_widen(uint64_t *bins, float *limit, float most);

/**
 * krn_kl_limit() - t of the bins' first i = 128, 144 ... 2048 at which sum p log(p / q) is least: p
 * counts those bins, all beyond added to the last; q are the same without what is beyond, in 128
 * groups, the mean of a group in each of its bins that are not empty; both scaled to a sum of 1. At
 * most a hundredth of the numbers is clipped: where few different ones exist, a clipped bin that
 * holds nearly all of them would look like a good fit.
 */
float krn_kl_limit(const uint64_t *bins, float limit);
