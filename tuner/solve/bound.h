/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/bound.h - a bound that no plan beats */
#pragma once

#include "tuner/problem.h"

/** tun_bound_ns() - the bottleneck of perfectly divisible work: units in any fractions on any
 * cores, no hand-off: the linear program min P: sum_u x_uk t_uk <= cores_k P, sum_k x_uk = 1, where
 * t_uk is the least time of cores that the unit takes there, by a team of any width. No plan is
 * faster. Return: 0 if memory lacks: nothing is known. */
double tun_bound_ns(const struct tun_problem *p);
