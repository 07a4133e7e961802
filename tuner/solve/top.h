/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/top.h - the best plan and its runners-up */
#pragma once

#include "tuner/solve/solve.h"

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
