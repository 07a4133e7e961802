/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/solve.h - the exact planner: the best plan of the whole space for a cost table
 *
 * One board: tuner/oneboard/oneboard.h has the space, the method and what makes an answer inexact.
 * Several: tuner/boards/solve_boards.h. Pure functions; any thread; they allocate; milliseconds
 * (docs/tuner.md has figures).
 *
 * Where a unit gains from several frames at once (tuner/at_once.h), all teams of a stage may
 * take 1, 2, 4 or 8 of them. The problem is solved with at most 1, 2, 4 and 8 frames in turn. A
 * larger batch is taken only if its figure (bottleneck; with LATENCY latency, with POWER
 * energy) is more than TUN_BATCH_GAIN below that of the best plan with smaller ones, or if only
 * it keeps the bounds: a frame stays longer in it, and the figures are uncertain. So the answer
 * is never predicted to be worse than the best plan that takes single frames. Where no plan
 * keeps a bound on latency, it has no batch. No batches over several boards, nor with
 * one_ep_stages.
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

/** tun_solve_with() - tun_solve() in a part of the space; for this folder. @p: was checked. */
struct tun_space_options;
int tun_solve_with(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_solution *ret);
