/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/histogram.h"

#define DECADE(ns) 10 * (ns), 16 * (ns), 25 * (ns), 40 * (ns), 63 * (ns)

/* Two more than there are, which nothing exceeds: find() looks that far. */
static const uint64_t bounds_ns[DMN_BUCKETS + 2] = {
    DECADE(1000ull),     DECADE(10000ull),     DECADE(100000ull),  DECADE(1000000ull),
    DECADE(10000000ull), DECADE(100000000ull), 10 * 1000000000ull, 16 * 1000000000ull,
    25 * 1000000000ull,  UINT64_MAX,           UINT64_MAX,
};

/* The first bucket whose bound is at least 2^k. */
static const uint8_t first[64] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  3,  5,  6,  8,  9,  11, 12,
    14, 15, 17, 18, 20, 21, 23, 24, 26, 27, 29, 30, 32, 33, 33, 33, 33, 33, 33, 33, 33, 33,
    33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33,
};

uint64_t dmn_histogram_bound_ns(size_t i)
{
    return bounds_ns[i];
}

/* At most two bounds lie between a power of two and the next. There is no branch, because the times
 * of frames are not predictable to a processor either. */
static size_t find(uint64_t ns)
{
    size_t i = first[63 - __builtin_clzll(ns | 1)];

    return i + (size_t)(bounds_ns[i] < ns) + (size_t)(bounds_ns[i + 1] < ns);
}

void dmn_histogram_add(struct dmn_histogram *h, uint64_t ns)
{
    h->count[find(ns)]++;
    h->sum_ns += ns;
}
