/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/select/figure.h"

#include <math.h>

#include "base/base.h"

#define NORMAL_95 1.96
#define INTERVAL_MIN 6u      /* samples from which on the interval means something */
#define FEW_SHARE 0.1        /* with fewer, of the centre, over the root of their count */
#define DISTURBED_SHARE 0.25 /* of a centre that disturbed samples count for */
#define LEAST_SHARE 0.002
#define SQRT_TWO_PI 2.5066282746310002

static void insert(double *sorted, size_t count, double x)
{
    for (; count > 0 && sorted[count - 1] > x; count--) {
        sorted[count] = sorted[count - 1];
    }
    sorted[count] = x;
}

static void sort(const double *x, size_t count, double *sorted)
{
    for (size_t i = 0; i < count; i++) {
        insert(sorted, i, x[i]);
    }
}

static double middle(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double krn_figure_median(const double *x, size_t count)
{
    double sorted[2 * KRN_FIGURE_SAMPLES];

    sort(x, count, sorted);
    return middle(sorted, count);
}

struct krn_figure krn_figure_of(const double *clean, size_t clean_count, const double *disturbed,
                                size_t disturbed_count)
{
    double sorted[2 * KRN_FIGURE_SAMPLES], rank, ns, sigma;
    size_t n = clean_count;

    sort(clean, clean_count, sorted);
    for (size_t i = 0; clean_count < KRN_FIGURE_CLEAN_MIN && i < disturbed_count; i++, n++) {
        insert(sorted, n, disturbed[i]);
    }
    if (n == 0) {
        return (struct krn_figure){0};
    }
    ns = middle(sorted, n);
    rank = floor((double)n / 2 - NORMAL_95 / 2 * sqrt((double)n));
    sigma = (ns - sorted[rank > 1 ? (size_t)rank - 1 : 0]) / NORMAL_95;
    if (clean_count < KRN_FIGURE_CLEAN_MIN) {
        sigma = base_max(sigma, DISTURBED_SHARE * ns);
    } else if (clean_count < INTERVAL_MIN) {
        sigma = base_max(sigma, FEW_SHARE * ns / sqrt((double)n));
    }
    return (struct krn_figure){ns, base_max(sigma, LEAST_SHARE * ns)};
}

struct krn_figure krn_figure_join(struct krn_figure a, struct krn_figure b)
{
    double of_a = a.sigma_ns * a.sigma_ns, of_b = b.sigma_ns * b.sigma_ns, apart = a.ns - b.ns;

    if (of_a <= 0 || of_b <= 0) {
        return of_a <= 0 ? b : a; /* no sample */
    }
    return (struct krn_figure){
        (a.ns * of_b + b.ns * of_a) / (of_a + of_b),
        sqrt(of_a * of_b / (of_a + of_b) * base_max(1.0, apart * apart / (of_a + of_b)))};
}

double krn_figure_gain(double behind_ns, double sigma_ns)
{
    double z;

    if (sigma_ns <= 0) {
        return base_max(-behind_ns, 0.0);
    }
    z = behind_ns / sigma_ns;
    return base_max(sigma_ns * exp(-z * z / 2) / SQRT_TWO_PI - behind_ns * erfc(z / sqrt(2.0)) / 2,
                    0.0);
}
