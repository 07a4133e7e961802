/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/sim/two_cores.h - a machine of two equal EPs with one core each and equal units, for
 * detectors on a scripted clock
 */
#pragma once

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/adapt/adapt.h"

#define UNITS 4u
#define UNIT_NS 1e7
#define WINDOW_NS (200 * BASE_NS_PER_MS)

static inline void adapt_free(struct tun_adapt **a)
{
    tun_adapt_free(*a);
}

/* A cost table of UNITS units that take UNIT_NS on either core. */
static inline void machine(struct tun_problem *p)
{
    static const struct tun_ep eps[] = {
        {.name = "a", .cores = 1, .speed = 1, .bandwidth = 1, .watts = 1},
        {.name = "b", .cores = 1, .speed = 1, .bandwidth = 1, .watts = 1}};

    T_EQ(tun_problem_init(p, UNITS, eps, base_array_count(eps)), 0);
    for (size_t u = 0; u < UNITS; u++) {
        p->units[u] = (struct tun_unit){.weight = 1};
        for (size_t k = 0; k < p->ep_count; k++) {
            *tun_cell_at(&p->costs, k, 1, u) =
                (struct tun_cell){.ns = UNIT_NS, .source = TUN_MEASURED};
        }
    }
}

/* Units before @cut on EP a, the others on b. */
static inline struct pl_plan halves(uint16_t cut)
{
    struct pl_plan plan = {.stage_count = 2};

    plan.stages[0] = (struct pl_stage_plan){.first_unit = 0,
                                            .last_unit = (uint16_t)(cut - 1),
                                            .group_count = 1,
                                            .groups = {{.ep = 0, .width = 1, .count = 1}}};
    plan.stages[1] = (struct pl_stage_plan){.first_unit = cut,
                                            .last_unit = UNITS - 1,
                                            .group_count = 1,
                                            .groups = {{.ep = 1, .width = 1, .count = 1}}};
    return plan;
}
