/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/solve.h - the exact planner: the best plan of the whole space for a cost table
 *
 * One board: tuner/oneboard/oneboard.h has the space, the method and what makes an answer inexact.
 * Several: tuner/boards/solve_boards.h. Pure functions; any thread; they allocate; milliseconds
 * (docs/tuner.md has figures).
 *
 * Where a unit gains from several frames at once (tuner/problem.h), all teams of a stage may
 * take 1, 2, 4 or 8 of them. The problem is solved with at most 1, 2, 4 and 8 frames in turn. A
 * larger batch is taken only if its figure (bottleneck; with LATENCY latency, with POWER
 * energy) is more than TUN_BATCH_GAIN below that of the best plan with smaller ones, or if only
 * it keeps the bounds: a frame stays longer in it, and the figures are uncertain. So the answer
 * is never predicted to be worse than the best plan that takes single frames. Where no plan
 * keeps a bound on latency, it has no batch. No batches over several boards, nor with
 * one_ep_stages. Nor teams over several EPs, which are tried where bounds.spans says so
 * (tuner/solve/spans.h); the front has none.
 */
#pragma once

#include "tuner/oneboard/oneboard.h"

/**
 * tun_solve() - the best plan by the problem's objective and bounds
 * @p: every cost known (tun_problem_check).
 * With several boards it plans over them: see tuner/boards/solve_boards.h.
 * Return: 0; TUN_E_IMPOSSIBLE: no plan keeps the bounds (@ret then holds the plan with the lowest
 * bottleneck; without a stage if none fits in memory and energy of the boards); -EINVAL; -ENOMEM.
 */
int tun_solve(const struct tun_problem *p, struct tun_solution *ret);

#define TUN_BATCH_GAIN 0.05

/**
 * tun_solve_top() - tun_solve()'s plan, then runners-up in the order of tun_better(), all distinct
 * A runner-up is the best plan without one of the stages of the best (the same units, whatever the
 * teams), the best without one of the EPs, or the best on one EP alone. The last are among them
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
 * cores, no hand-off: the linear program min P: sum_u x_uk t_uk <= cores_k P, sum_k x_uk = 1, where
 * t_uk is the least time of cores that the unit takes there, by a team of any width. No plan is
 * faster. Return: 0 if memory lacks: nothing is known. */
double tun_bound_ns(const struct tun_problem *p);
/** tun_bound_limits() - the same, and by how much the cores of each EP limit it
 * @ret_limits: [ep_count], they sum to 1: so much less the bound were, in proportion, with so much
 * more of these cores (the prices of the linear program times cores). */
double tun_bound_limits(const struct tun_problem *p, double *ret_limits);
