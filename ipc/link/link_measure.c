/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/link_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

#define SAMPLES_MAX (2 * LNK_MEASURE_RING)
#define LEAST_OF_A_KIND 3u
#define MAD_TO_SIGMA 1.4826 /* of a normal distribution */

struct weighted {
    double value, weight;
};

static int compare(const void *a, const void *b)
{
    const struct weighted *x = a, *y = b;

    return (x->value > y->value) - (x->value < y->value);
}

/* @w: sorted here. Return: where half of the weight is below. */
static double median(struct weighted *w, size_t count)
{
    double total = 0, below = 0;

    qsort(w, count, sizeof(*w), compare);
    for (size_t i = 0; i < count; i++) {
        total += w[i].weight;
    }
    for (size_t i = 0; i < count; i++) {
        below += w[i].weight;
        if (below == total / 2 && i + 1 < count) {
            return (w[i].value + w[i + 1].value) / 2;
        }
        if (below >= total / 2) {
            return w[i].value;
        }
    }
    return 0;
}

void lnk_measure_init(struct lnk_measure *m)
{
    memset(m, 0, sizeof(*m));
}

void lnk_measure_add(struct lnk_measure *m, uint64_t bytes_out, uint64_t bytes_back, uint64_t ns)
{
    double bytes = (double)bytes_out + (double)bytes_back;
    size_t kind = bytes > LNK_MEASURE_SMALL_BYTES;

    m->sample[kind][m->count[kind]++ % LNK_MEASURE_RING] = (struct lnk_sample){bytes, (double)ns};
}

/* Return: how many samples there are. */
static size_t gather(const struct lnk_measure *m, struct lnk_sample ret[SAMPLES_MAX])
{
    size_t n = 0;

    for (size_t kind = 0; kind < 2; kind++) {
        size_t kept = (size_t)base_min(m->count[kind], (uint64_t)LNK_MEASURE_RING);

        memcpy(ret + n, m->sample[kind], kept * sizeof(*ret));
        n += kept;
    }
    return n;
}

/* The median of the slopes of all pairs. The pairs of 48 samples take 18 kB of the stack. */
static double slope(const struct lnk_sample *s, size_t n)
{
    struct weighted w[SAMPLES_MAX * (SAMPLES_MAX - 1) / 2];
    size_t pairs = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            double dx = s[k].bytes - s[i].bytes;

            if (dx != 0) {
                w[pairs++] = (struct weighted){(s[k].ns - s[i].ns) / dx, fabs(dx)};
            }
        }
    }
    return pairs ? base_max(median(w, pairs), 0.0) : 0;
}

int lnk_measure_get(const struct lnk_measure *m, struct lnk_link_cost *ret)
{
    struct lnk_sample s[SAMPLES_MAX];
    struct weighted w[SAMPLES_MAX];
    double b, both, sigma, mean = 0, spread = 0;
    size_t n;

    if (m->count[0] < LEAST_OF_A_KIND || m->count[1] < LEAST_OF_A_KIND) {
        return LNK_MEASURE_E_UNKNOWN;
    }
    n = gather(m, s);
    b = slope(s, n);
    for (size_t i = 0; i < n; i++) {
        w[i] = (struct weighted){s[i].ns - b * s[i].bytes, 1};
        mean += s[i].bytes / (double)n;
    }
    both = base_max(median(w, n), 0.0);
    for (size_t i = 0; i < n; i++) {
        w[i] = (struct weighted){fabs(s[i].ns - b * s[i].bytes - both), 1};
        spread += (s[i].bytes - mean) * (s[i].bytes - mean);
    }
    sigma = MAD_TO_SIGMA * median(w, n);
    *ret = (struct lnk_link_cost){
        .a_ns = both / 2, /* two ways */
        .b_ns = b,
        /* least squares' errors of intercept and slope, with the robust sigma */
        .a_err_ns = sigma * sqrt(1 / (double)n + mean * mean / spread) / 2,
        .b_err_ns = sigma / sqrt(spread),
        .samples = n,
    };
    return 0;
}
