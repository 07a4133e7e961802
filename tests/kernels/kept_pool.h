/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/kept_pool.h - thread pools that a test program keeps
 *
 * To make a pool takes much longer than what a small case runs on it. Its threads give their core
 * away while they wait: with more threads than cores they would spin in each other's way.
 */
#pragma once

#include <pthreadpool.h>

#include "kernels/common/parallel.h"

#define KEPT_POOL_WIDTH_MAX 3u

/* Return: the pool of @width threads, at most KEPT_POOL_WIDTH_MAX, the same at each call; NULL for
 * one thread. Never freed. Threads: the one that runs the cases. */
static inline pthreadpool_t kept_pool(size_t width)
{
    static pthreadpool_t pools[KEPT_POOL_WIDTH_MAX + 1];

    if (width > 1 && !pools[width]) {
        pools[width] = pthreadpool_create(width);
        krn_parallel_yield(true);
    }
    return pools[width];
}

static inline void kept_pool_nothing(void *arg, size_t part)
{
}

/* Lets a pool's threads sleep after a library's call, which leaves them spinning. Takes NULL. */
static inline void kept_pool_rest(pthreadpool_t pool, size_t width)
{
    if (pool) {
        krn_parallel(pool, width, kept_pool_nothing, NULL);
    }
}
