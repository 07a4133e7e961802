/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/boards/boards_front.h - the front of period, memory and energy */
#pragma once

#include "tuner/oneboard/oneboard.h"

/**
 * tun_boards_front() - plans of which none is better in all of outcome.bottleneck_ns,
 * .most_memory_bytes and .most_energy_nj, by rising bottleneck
 * The objective and the bound on latency do not count; period, memory and energy do.
 * @max: at most so many, >= 1; a larger front is thinned. @ret_exact: it is the whole front.
 * Return: 0 with *ret_count >= 1; TUN_E_IMPOSSIBLE; -EINVAL; -ENOMEM.
 */
int tun_boards_front(const struct tun_problem *p, size_t max, struct tun_solution *ret,
                     size_t *ret_count, bool *ret_exact);
