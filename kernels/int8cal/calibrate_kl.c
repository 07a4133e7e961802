/* SPDX-License-Identifier: Apache-2.0 */
/* Where to clip a distribution that is quantised to 128 steps. */
#include "kernels/int8cal/calibrate.h"

#include <math.h>

#include "base/base.h"

#define STEPS 128u /* of one sign of 8 bits */
#define STRIDE 16u
#define BEYOND_MAX 0.01
#define EMPTY 1e-9 /* q of an empty bin where p is not empty, so that the logarithm is finite */

void krn_kl_widen(uint64_t *bins, float *limit, float most)
{
    if (*limit == 0) {
        *limit = most;
        return;
    }
    while (*limit < most) {
        for (size_t i = 0; i < KRN_KL_BINS / 2; i++) {
            bins[i] = bins[2 * i] + bins[2 * i + 1];
        }
        memset(bins + KRN_KL_BINS / 2, 0, KRN_KL_BINS / 2 * sizeof(*bins));
        *limit *= 2;
    }
}

/* q of the first @n bins, not yet scaled: the mean over the bins of each group that are not empty
 */
static double flatten(const uint64_t *bins, size_t n, double *ret_q)
{
    double sum = 0;

    for (size_t g = 0; g < STEPS; g++) {
        size_t from = g * n / STEPS, to = (g + 1) * n / STEPS, used = 0;
        double total = 0;

        for (size_t i = from; i < to; i++) {
            total += (double)bins[i];
            used += bins[i] != 0;
        }
        for (size_t i = from; i < to; i++) {
            ret_q[i] = bins[i] ? total / (double)used : 0;
            sum += ret_q[i];
        }
    }
    return sum;
}

static double divergence(const uint64_t *bins, size_t n, double all)
{
    double q[KRN_KL_BINS], beyond = 0, sum = 0, q_sum = flatten(bins, n, q);

    for (size_t i = n; i < KRN_KL_BINS; i++) {
        beyond += (double)bins[i];
    }
    if (q_sum == 0 || beyond > BEYOND_MAX * all) {
        return INFINITY;
    }
    for (size_t i = 0; i < n; i++) {
        double p = ((double)bins[i] + (i == n - 1 ? beyond : 0)) / all;

        if (p > 0) {
            sum += p * log(p / base_max(q[i] / q_sum, EMPTY));
        }
    }
    return sum;
}

float krn_kl_limit(const uint64_t *bins, float limit)
{
    double all = 0, least = INFINITY;
    size_t best = KRN_KL_BINS;

    for (size_t i = 0; i < KRN_KL_BINS; i++) {
        all += (double)bins[i];
    }
    for (size_t n = STEPS; all > 0 && n <= KRN_KL_BINS; n += STRIDE) {
        double d = divergence(bins, n, all);

        if (d < least) {
            least = d;
            best = n;
        }
    }
    return limit * (float)best / (float)KRN_KL_BINS;
}
