/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/bound.h - a bound that no plan of one-core teams beats */
#pragma once

#include "tuner/problem.h"

/** tun_bound_ns() - the bottleneck of perfectly divisible work: units in any fractions on any
 * cores at width 1, no hand-off: the linear program min P: sum_u x_uk t_uk <= cores_k P, sum_k x_uk
 * = 1. No plan of one-core teams is faster. */
double tun_bound_ns(const struct tun_problem *p);
