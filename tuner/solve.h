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
 * Ties go to the lower bottleneck (closed in on with a bounded number of programs), then to fewer
 * of the fastest cores. Where the table of states would pass TUN_STATES_MAX, cores are handed out
 * in blocks (a power of two for the kinds with most cores), and kinds of one block are bundled;
 * where there are more units than a pass over all segments can afford (hundreds), neighbours are
 * joined in advance; where a plan would pass PL_GROUP_MAX or PL_TEAM_MAX, stages get one width of a
 * kind, or teams get wider. POWER with a bound on latency too keeps at most 48 partial plans of a
 * state, and none beyond 512 states or 2^20 states times segments. The result then says so
 * (blocks): exact no more, still a valid plan. Bounds are kept to the last bit as tun_eval() sums.
 *
 * Pure functions; any thread; they allocate; milliseconds (docs/tuner.md has figures).
 */
#pragma once

#include "tuner/eval.h"

#define TUN_STATES_MAX 4096u

struct tun_solution {
    struct pl_plan plan;
    struct tun_outcome outcome; /* by the table */
    bool blocks;                /* something was left out, see above: not exact */
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
 * tun_solve_top() - tun_solve()'s plan, then runners-up in the order of tun_better(), all distinct
 * A runner-up is the best plan without one of the stages of the best (the same units, whatever the
 * teams), the best without one of the kinds, or the best on one kind alone. The last are among them
 * even if they break the bounds (then with the lowest bottleneck), as far as @count allows.
 * @count: how many at most. Return: 0 with *ret_count >= 1; TUN_E_IMPOSSIBLE likewise; or as
 * tun_solve(); -EINVAL if @count is 0.
 */
int tun_solve_top(const struct tun_problem *p, size_t count, struct tun_solution *ret,
                  size_t *ret_count);

/**
 * tun_front() - the throughput-latency front: plans of which none is better in both, by rising
 * bottleneck, from the least bottleneck to the least latency
 * The objective and the bounds on period and latency do not count, those on the shape do.
 * @max: at most so many; when the front has more, points of nearly equal bottleneck are left out.
 * Return: 0 with *ret_count >= 1, -EINVAL, -ENOMEM.
 */
int tun_front(const struct tun_problem *p, size_t max, struct tun_solution *ret, size_t *ret_count);

/** tun_bound_ns() - the bottleneck of perfectly divisible work: units in any fractions on any
 * cores at width 1, no hand-off: the linear program min P: sum_u x_uk t_uk <= cores_k P, sum_k x_uk
 * = 1. No plan of one-core teams is faster. */
double tun_bound_ns(const struct tun_problem *p);
