/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/calibrate_kl.h - where to clip a distribution that is quantised to 128 steps
 *
 * Source: S. Migacz, "8-bit Inference with TensorRT", GTC 2017.
 */
#pragma once

#include <stdint.h>

#define KRN_KL_BINS 2048u

/**
 * krn_kl_widen() - extends the bins to numbers up to @most > 0
 * @bins: [KRN_KL_BINS] counts of |x| in equal steps up to *@limit, all 0 while *@limit is 0. The
 * limit doubles until it reaches @most; each doubling merges neighbouring bins.
 */
void krn_kl_widen(uint64_t *bins, float *limit, float most);

/**
 * krn_kl_limit() - Return: the limit t = i bins, i = 128, 144 ... 2048, with the least sum p log(p
 * / q). p: the counts of the first i bins, with all beyond added to the last. q: the first i bins
 * in 128 groups; each non-empty bin gets the mean of its group. Both are scaled to a sum of 1. At
 * most a hundredth of the numbers is clipped: with few distinct numbers, a clipped bin that holds
 * nearly all of them would look like a good fit.
 */
float krn_kl_limit(const uint64_t *bins, float limit);
