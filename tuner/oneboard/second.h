/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/oneboard/second.h - the second program, G of tuner/oneboard/oneboard.h: latency or
 * energy within a
 * bound on the period */
#pragma once

#include "tuner/oneboard/solution.h"

/** tun_second() - the least figure with no period above @period_ns (INFINITY: any). Return: 0,
 * TUN_E_IMPOSSIBLE or -ENOMEM. */
int tun_second(const struct tun_space *s, double period_ns, enum tun_figure figure,
               struct tun_path *ret);
