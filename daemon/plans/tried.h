/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/tried.h - what the last retune measured, for who plans by predictions later
 *
 * A prediction adds up units, so it cannot know how stages slow each other. Where a retune has
 * measured a plan, that figure is better than any prediction. The costs may have changed since, by
 * heat for example; a measured time t is then moved by what the cost table says now and said then:
 * t * T_now / T_then. Threads: the loop thread.
 */
#pragma once

#include "daemon/models/serving.h"
#include "daemon/plans/planner.h"

struct dmn_tried;

/** dmn_tried_new() - keeps @chosen, a measured trial of the plan that a search for @goal chose.
 * @room: how many other plans can be added. @p: the costs of this time. Return: owned (free); NULL:
 * out of memory, nothing was measured, or @goal is POWER: trials do not measure energy. */
struct dmn_tried *dmn_tried_new(const struct tun_problem *p, const struct dmn_goal *goal,
                                const struct tun_algorithm *algorithm,
                                const struct tun_trial *chosen, size_t room);
/** dmn_tried_add() - adds what was measured of another plan; only the first of a plan counts. */
void dmn_tried_add(struct dmn_tried *t, const struct tun_problem *p, const struct pl_plan *plan,
                   double bottleneck_ns, double latency_ns);

/**
 * dmn_tried_best() - which plan should serve: @predicted, or one that the last retune measured
 *
 * The plan that the retune chose yields only to one that is better by more than a trial may be off
 * (DMN_TRIAL_UNCERTAINTY). Trials for another goal do not count. @t: NULL: nothing was measured.
 * @p: the costs now, with @goal's objective and bounds. @origin: of @predicted; set to the
 * retune's algorithm for another plan. Return: borrowed of @t or @predicted.
 */
const struct pl_plan *dmn_tried_best(const struct dmn_tried *t, const struct tun_problem *p,
                                     const struct dmn_goal *goal,
                                     const struct tun_solution *predicted,
                                     struct dmn_origin *origin);
