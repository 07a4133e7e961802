/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/oneboard/period.h - the first program, F of tuner/oneboard/oneboard.h: the least bottleneck
 */
#pragma once

#include "tuner/oneboard/solution.h"

/**
 * tun_reach() - least steps of the last dimension for the atoms in front of (or, @back, behind)
 * each border, by row, with no period above 1 / need
 * @ret: [atom_count + 1][row_count]
 */
void tun_reach(const struct tun_space *s, struct tun_maker *m, double need, bool back,
               int16_t *ret);

/** tun_least_period() - the least bottleneck and a plan that has it. Return: 0, -ENOMEM, or
 * TUN_E_IMPOSSIBLE (only with a forbidden stage). */
int tun_least_period(const struct tun_space *s, struct tun_path *ret);
