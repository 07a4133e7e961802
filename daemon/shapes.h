/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/shapes.h - which shapes of team the cost table knows nothing of, and plans that show them
 *
 * A shape is (kind of core, width): widths 1, 2, 4 ... and all cores of the kind; others are
 * predicted from these. One stage with teams on all cores shows several shapes at once while
 * everything works, so that frames keep coming out at nearly the pace of one worker per core. Left
 * alone are shapes that the table already puts far behind. Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tuner/problem.h"

/* Share of the network's total rate below which a kind is not worth running it on. */
#define DMN_SHAPES_RATE_MIN 0.02
/* How much of its cores' single-threaded rate a wide team must promise, where throughput is wanted.
 */
#define DMN_SHAPES_YIELD_MIN 0.7

struct dmn_shapes {
    unsigned tried[PL_EP_MAX]; /* bit i: width min(2^i, cores) */
};

/**
 * dmn_shapes_next() - a one-stage plan with the narrowest shapes that are neither known nor tried;
 * marks them as tried
 * Where throughput alone is wanted, wide teams gain nothing even if they scaled perfectly once the
 * plan that serves, or one worker on each core, is within the slack of tun_bound_ns(); then, if all
 * widths of 1 are known, none is shown.
 * @p: every cell has a figure. @present_ns: measured bottleneck of the plan that serves, 0:
 * unknown. Return: false when there is none left.
 */
bool dmn_shapes_next(struct dmn_shapes *s, const struct tun_problem *p, double present_ns,
                     struct pl_plan *ret);
