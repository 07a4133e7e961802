/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/boards/solve_boards.h - the exact planner over several boards
 *
 * The space: every board runs one segment or none; a segment is any plan of one board
 * (tuner/oneboard/oneboard.h), or a share of one stage that it has in common with other boards.
 * There it uses the teams of its highest rate, of those the set whose slowest team is fastest. Left
 * out: a board that is come back to, boards that share a stage with fewer cores than they have, and
 * a bound on the number of stages (refused).
 *
 * Between boards a program runs over (unit, boards used, boards of the last segment), inside a
 * board over (unit, cores used). The least period is closed in on: for a bound, which segments are
 * possible, and is there a way through them. Latency and energy are sums of segments within that
 * bound, memory and energy of a board are known when its segment is added. Boards that are equal
 * and equally linked are exchanged for each other, not tried apart.
 *
 * Not exact (`blocks`) as tun_solve(), and where a segment would have more than 16 plans none of
 * which is better in both latency and energy (only with bounds on both).
 *
 * Pure functions; any thread; they allocate.
 */
#pragma once

#include "tuner/oneboard/oneboard.h"

/** tun_boards_solve() - tun_solve() for boards.count > 1; called by it. @p: was checked. */
int tun_boards_solve(const struct tun_problem *p, const struct tun_space_options *o,
                     struct tun_solution *ret);

/**
 * tun_boards_front() - plans of which none is better in all of outcome.bottleneck_ns,
 * .most_memory_bytes and .most_energy_nj, by rising bottleneck
 * The objective and the bound on latency do not count; period, memory and energy do.
 * @max: at most so many, >= 1; a larger front is thinned. @ret_exact: it is the whole front.
 * Return: 0 with *ret_count >= 1; TUN_E_IMPOSSIBLE; -EINVAL; -ENOMEM.
 */
int tun_boards_front(const struct tun_problem *p, size_t max, struct tun_solution *ret,
                     size_t *ret_count, bool *ret_exact);

extern const char *const tun_short_texts[]; /* by enum tun_short; why there is no plan, in words */
