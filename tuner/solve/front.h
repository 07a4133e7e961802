/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/front.h - the front of throughput and latency */
#pragma once

#include "tuner/solve/solve.h"

/**
 * tun_front() - the throughput-latency front: plans of which none is better in both, by rising
 * bottleneck, from the least bottleneck to the least latency
 * The objective and the bounds on period and latency do not count, those on the shape do.
 * @max: at most so many; when the front has more, points of nearly equal bottleneck are left out.
 * Return: 0 with *ret_count >= 1, -EINVAL, -ENOMEM.
 */
int tun_front(const struct tun_problem *p, size_t max, struct tun_solution *ret, size_t *ret_count);
