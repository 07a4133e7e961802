/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/histogram.h"

#include "base.h"

#define DECADE(ns) 10 * (ns), 16 * (ns), 25 * (ns), 40 * (ns), 63 * (ns)

static const uint64_t bounds_ns[] = {
    DECADE(1000ull),    DECADE(10000ull),    DECADE(100000ull),
    DECADE(1000000ull), DECADE(10000000ull), DECADE(100000000ull),
    10 * 1000000000ull, 16 * 1000000000ull,  25 * 1000000000ull,
};
_Static_assert(base_array_count(bounds_ns) == DMN_BUCKETS, "the buckets of a histogram");

uint64_t dmn_histogram_bound_ns(size_t i)
{
    return bounds_ns[i];
}

void dmn_histogram_add(struct dmn_histogram *h, uint64_t ns)
{
    size_t first = 0, left = DMN_BUCKETS;

    while (left > 0) { /* the first bound that is not below */
        size_t half = left / 2;

        if (bounds_ns[first + half] < ns) {
            first += half + 1;
            left -= half + 1;
        } else {
            left = half;
        }
    }
    h->count[first]++;
    h->sum_ns += ns;
}
