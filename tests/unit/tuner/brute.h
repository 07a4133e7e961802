/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/tuner/brute.h - every plan of a small problem, tried one after the other: what the
 * exact planner is checked against
 *
 * It knows nothing of the planner's ideas: plans are written by plain recursion and judged by
 * tun_eval() and tun_fits().
 */
#pragma once

#include "tuner/eval.h"
#include "tuner/search/random.h"

#define BRUTE_POINTS_MAX 4096u

struct brute_plans {
    size_t plan_count;
    bool possible;                     /* some plan keeps the bounds */
    double figure;                     /* the best by the objective: ns, or nJ for POWER */
    double tie_bottleneck_ns;          /* the lowest bottleneck among the plans with that figure */
    double least_bottleneck_ns;        /* of all plans that fit, bounds or not */
    double within_bottleneck_ns;       /* of those that keep the bounds */
    size_t front_count;                /* plans of which none is better in bottleneck and latency */
    double front[BRUTE_POINTS_MAX][2]; /* bottleneck, latency; by rising bottleneck */
};

/** brute_plans() - @p: small, at most 8 units and 6 cores. THROUGHPUT's figure is the lowest
 * latency among the plans within slack of the least bottleneck. Return: 0 or -ENOMEM. */
int brute_plans(const struct tun_problem *p, struct brute_plans *ret);
/** brute_batches() - as brute_plans(), and all teams of a stage take 1, 2, 4, ... frames at
 * once, at most @batch_max. @p: at most 5 units. */
int brute_batches(const struct tun_problem *p, size_t batch_max, struct brute_plans *ret);

/** brute_problem() - a random problem that small: any EPs, costs, objective and bounds, some
 * of them impossible. @cores_max: of all EPs, 1..6; @units_max: 1..8. Return: 0 or -ENOMEM. */
int brute_problem(struct tun_random *random, size_t units_max, size_t cores_max,
                  struct tun_problem *ret);

/**
 * every_plan() - calls @visit for each plan, which is borrowed during the call
 *
 * Any cuts, and any number of teams of each EP and width that its cores allow. Nothing is left out
 * but stages with more groups than the planner of as many boards gives them. Exponential; any
 * thread; no allocation.
 */
void every_plan(const struct tun_problem *p, void (*visit)(void *arg, const struct pl_plan *plan),
                void *arg);
