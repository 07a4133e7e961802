/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/histogram.h - how long frames took: counts in fixed buckets, for Prometheus
 *
 * The upper bounds of the buckets are 10 us times 1, 1.6, 2.5, 4, 6.3, 10, ... (five a decade, the
 * R5 series of ISO 3), so a quantile is off by a factor of 1.6 at most. All histograms have the
 * same bounds, and they never change, so those of several models or boards may be added up.
 *
 * The count and the sum are exact. Plain data; all zeros is an empty one. Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DMN_BUCKETS 33u /* with a bound; one more for what is longer than all of them */

struct dmn_histogram {
    uint64_t count[DMN_BUCKETS + 1]; /* of each bucket alone */
    uint64_t sum_ns;
};

/** dmn_histogram_bound_ns() - Return: the upper bound of bucket @i < DMN_BUCKETS, which is in the
 * bucket. */
uint64_t dmn_histogram_bound_ns(size_t i);
/** dmn_histogram_add() - counts one time. Allocates nothing. */
void dmn_histogram_add(struct dmn_histogram *h, uint64_t ns);
