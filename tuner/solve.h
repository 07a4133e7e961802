/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve.h - the exact planner: the best plan of the whole space for a cost table
 *
 * The space: consecutive units in stages; a stage has teams of any kinds, widths and counts that
 * share its frames; no core is given out twice. Dynamic programming over (unit, cores used of each
 * kind). With R(i..j, r) the highest rate sum_t 1/T_t of teams within the cores r,
 *     F(j, u) = min over i, r <= u of  max(F(i, u - r), 1 / R(i..j, r))
 * is the best bottleneck of the first j units on cores u. For the second figure (latency, energy)
 * an additive program runs over the stages whose period is within the bound the first one found:
 *     G(j, u) = min over i, r <= u of  G(i, u - r) + g(i..j, r, bound)
 * (chains-on-chains with replication; the equal case with two kinds is HeRAD, Orhan et al. 2025).
 *
 * Ties go to the lower bottleneck, then fewer cores of the fastest kinds, then fewer stages.
 * Where the table of states would pass TUN_STATES_MAX, cores are handed out in blocks (a power of
 * two for the kinds with most cores) and the result says so: exact no more, still a valid plan.
 *
 * Pure functions; any thread; they allocate; milliseconds (docs/tuner.md has figures).
 */
#pragma once

#include "tuner/eval.h"

#define TUN_STATES_MAX 4096u

struct tun_solution {
    struct pl_plan plan;
    struct tun_outcome outcome; /* by the table */
    bool blocks;                /* cores were handed out in blocks, see above */
};

/**
 * tun_solve() - the best plan by the problem's objective and bounds
 * @p: every cost known (tun_problem_check).
 * Return: 0; TUN_E_IMPOSSIBLE: no plan keeps the bounds (@ret then holds the plan with the lowest
 * bottleneck); -EINVAL; -ENOMEM.
 */
enum { TUN_E_IMPOSSIBLE = 2 };
int tun_solve(const struct tun_problem *p, struct tun_solution *ret);

/**
 * tun_solve_top() - the best plan and runners-up, each the best plan with another sequence of
 * (cuts, teams), best first; the best plan of one-kind stages of each kind alone is among them
 * @count: how many at most. Return: 0 with *ret_count >= 1, or as tun_solve().
 */
int tun_solve_top(const struct tun_problem *p, size_t count, struct tun_solution *ret,
                  size_t *ret_count);

/**
 * tun_front() - the throughput-latency front: plans of which none is better in both, by rising
 * bottleneck, from the least bottleneck to the least latency
 * @max: at most so many; when the front has more, points of nearly equal bottleneck are left out.
 * Return: 0 with *ret_count >= 1, -EINVAL, -ENOMEM.
 */
int tun_front(const struct tun_problem *p, size_t max, struct tun_solution *ret, size_t *ret_count);

/** tun_bound_ns() - the bottleneck of perfectly divisible work: units in any fractions on any
 * cores at width 1, no hand-off: the linear program min P: sum_u x_uk t_uk <= cores_k P, sum_k x_uk
 * = 1. No plan of one-core teams is faster. */
double tun_bound_ns(const struct tun_problem *p);
