/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/search/random.h - seeded chance by splitmix64; the same on every machine */
#pragma once

#include "base/base.h"

struct tun_random {
    uint64_t state; /* any value is a seed */
};

static inline uint64_t tun_random_next(struct tun_random *r)
{
    return base_splitmix64(&r->state);
}
/** tun_random_below() - uniform in 0..n-1; @n: >= 1. */
static inline size_t tun_random_below(struct tun_random *r, size_t n)
{
    return (size_t)(((unsigned __int128)tun_random_next(r) * n) >> 64);
}
/** tun_random_unit() - uniform in [0, 1). */
static inline double tun_random_unit(struct tun_random *r)
{
    return (double)(tun_random_next(r) >> 11) * 0x1p-53;
}
/** tun_random_normal() - standard normal, by the sum of twelve uniforms (no libm, so the same bits
 * everywhere); within +-6. */
static inline double tun_random_normal(struct tun_random *r)
{
    double sum = -6;

    for (int i = 0; i < 12; i++) {
        sum += tun_random_unit(r);
    }
    return sum;
}
