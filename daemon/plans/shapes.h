/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/shapes.h - shapes of team that the cost table does not know, and plans to measure
 * them
 *
 * A shape is (EP, width), with widths 1, 2, 4, ... and all cores of the EP; other widths are
 * predicted from these. A one-stage plan with teams on all cores measures several shapes at once,
 * so frames come out at nearly the pace of one worker per core. Shapes that the table already puts
 * far behind are skipped. Pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "tuner/problem.h"

/* An EP with less than this share of the network's total rate is not worth using. */
#define DMN_SHAPES_RATE_MIN 0.02
/* Where throughput is wanted, a wide team must promise this share of its cores' single-threaded
 * rate. */
#define DMN_SHAPES_YIELD_MIN 0.7

struct dmn_shapes {
    unsigned tried[PL_EP_MAX]; /* bit i: width min(2^i, cores) */
};

/**
 * dmn_shapes_next() - a one-stage plan with the narrowest shapes that are neither known nor tried;
 * marks them as tried
 *
 * If only throughput is wanted and all widths of 1 are known, no wide team is shown once the
 * serving plan, or one worker on each core, is within the slack of tun_bound_ns(): even perfect
 * scaling would gain nothing. @p: every cell has a figure. @present_ns: measured bottleneck of the
 * serving plan; 0: unknown. Return: true with @ret set; false: there is none left.
 */
bool dmn_shapes_next(struct dmn_shapes *s, const struct tun_problem *p, double present_ns,
                     struct pl_plan *ret);
