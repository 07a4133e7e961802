/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/sim/big_little.h - a described machine of four big and four little cores, for scenarios
 * on a scripted clock
 */
#pragma once

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/problem.h"

#define UNITS 16u

/* A cost table of UNITS units of unequal weight. */
static inline void machine(struct tun_problem *p)
{
    static const struct tun_ep eps[] = {
        {.name = "big", .cores = 4, .speed = 1, .bandwidth = 1, .watts = 2},
        {.name = "little", .cores = 4, .speed = 0.4, .bandwidth = 0.6, .watts = 1}};

    T_EQ(tun_problem_init(p, UNITS, eps, base_array_count(eps)), 0);
    p->handoff_ns = 2e4;
    p->handoff_ns_per_byte = 0.05;
    for (size_t u = 0; u < UNITS; u++) {
        p->units[u] = (struct tun_unit){.weight = 1 + (double)(u % 5),
                                        .in_bytes = u ? 1e5 : 0,
                                        .gemm_n = u % 3 ? 196 : 0,
                                        .gemm_k = u % 3 ? 500 : 0,
                                        .gemm_m = u % 3 ? 256 : 0};
        for (size_t k = 0; k < p->ep_count; k++) {
            for (size_t w = 1; w <= eps[k].cores; w++) {
                double slower = k ? 2.2 + 0.1 * (double)(u % 4) : 1;

                *tun_cell_at(&p->costs, k, w, u) = (struct tun_cell){
                    .ns = (1 + (double)(u % 5)) * 2e6 * slower * (0.15 + 0.85 / (double)w),
                    .source = TUN_MEASURED};
            }
        }
    }
}
