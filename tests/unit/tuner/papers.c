/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tuner/papers.h"

#include <math.h>

#include "pipeline/plan.h"
#include "tuner/search/places.h"

double paper_cv(const double *weight, const uint16_t *layers, size_t stages)
{
    double sum[PL_STAGE_MAX] = {0}, mean = 0, square = 0;

    for (size_t s = 0, u = 0; s < stages; s++) {
        for (size_t end = u + layers[s]; u < end; u++) {
            sum[s] += weight[u];
        }
        mean += sum[s] / (double)stages;
    }
    for (size_t s = 0; s < stages; s++) {
        square += (sum[s] - mean) * (sum[s] - mean) / (double)stages;
    }
    return mean > 0 ? sqrt(square) / mean : 0;
}

/* Pipe-it eq. 1: pipelines of exactly @p stages. */
static double pipelines_of(size_t big, size_t small, size_t p)
{
    double sum = 0;

    for (size_t b = 1; b < p && b <= big; b++) {
        if (p - b <= small) {
            sum += tun_binomial(big - 1, b - 1) * tun_binomial(small - 1, p - b - 1);
        }
    }
    return sum;
}

double paper_pipelines(size_t big, size_t small, size_t stages)
{
    double sum = 0;

    for (size_t p = 2; p <= stages && p <= big + small; p++) {
        sum += pipelines_of(big, small, p);
    }
    return sum;
}

double paper_points(size_t layers, size_t big, size_t small)
{
    double sum = 0;

    for (size_t p = 2; p <= layers && p <= big + small; p++) {
        sum += tun_binomial(layers - 1, p - 1) * pipelines_of(big, small, p);
    }
    return sum;
}

double paper_space_log10(enum tun_encoding encoding, size_t units, size_t places)
{
    double digits = 0;

    if (encoding == TUN_ENCODING_NE) {
        return (double)units * log10((double)places);
    }
    for (size_t i = 1; i < places; i++) {
        digits += log10((double)(units + i) / (double)i);
    }
    return digits;
}
