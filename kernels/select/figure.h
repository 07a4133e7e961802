/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/figure.h - what samples of a time say: a centre and how far it may be wrong
 *
 * The centre is the median of the samples that nothing disturbed. Its standard uncertainty comes
 * from the interval that holds the median with 95 %, whatever the distribution. Where too few
 * samples are clean, the uncertainty is set high, so that the figure decides little. Pure
 * functions.
 */
#pragma once

#include <stddef.h>

#define KRN_FIGURE_SAMPLES 20u
#define KRN_FIGURE_CLEAN_MIN 3u /* with fewer clean samples, disturbed ones count, too */

struct krn_figure {
    double ns, sigma_ns; /* centre and its standard uncertainty */
};

/** krn_figure_median() - Return: the middle of @x, or the mean of its two middles. @count: 1 to
 * 2 KRN_FIGURE_SAMPLES */
double krn_figure_median(const double *x, size_t count);

/**
 * krn_figure_of() - the figure of @clean and @disturbed samples, in nanoseconds, in any order
 * @clean_count, @disturbed_count: at most KRN_FIGURE_SAMPLES
 *
 * From 6 clean samples x(1) <= ... <= x(n) on, with j = floor(n/2 - 0.98 sqrt(n)), at least 1, the
 * interval from x(j) to x(n + 1 - j) holds the median with 95 %. Others only ever make a time
 * longer, so the lower half tells what is uncertain without them: sigma = (centre - x(j)) / 1.96.
 * Source of the interval: J.-Y. Le Boudec, Performance Evaluation of
 * Computer and Communication Systems, theorem 2.1. Three to five: at least 0.1 / sqrt(n) of the
 * centre. Fewer: all samples count, and sigma is at least a quarter of the centre. It is never
 * below 0.2 %, as caches and places in memory differ from one load to the next. Without a sample,
 * both are 0.
 */
struct krn_figure krn_figure_of(const double *clean, size_t clean_count, const double *disturbed,
                                size_t disturbed_count);

/**
 * krn_figure_join() - joins two measurements of the same time
 * Weights are 1 / sigma^2. Where the two differ by more than their uncertainties explain, sigma
 * grows by the Birge ratio. Source: R. T. Birge, The Calculation of Errors by the Method of Least
 * Squares, Physical Review 40 (1932), 207-227.
 */
struct krn_figure krn_figure_join(struct krn_figure a, struct krn_figure b);

/**
 * krn_figure_gain() - Return: what is gained on average by knowing whether a choice that seems to
 * take @behind_ns longer than another one, with an uncertainty of @sigma_ns, is faster after all
 * sigma phi(d / sigma) - d (1 - Phi(d / sigma)), d = @behind_ns. Source: D. R. Jones, M. Schonlau,
 * W. J. Welch, Efficient Global Optimization of Expensive Black-Box Functions, eq. 15.
 */
double krn_figure_gain(double behind_ns, double sigma_ns);
