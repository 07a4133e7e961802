/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/span.h - teams over cores of several EPs: what they should take, and what they took
 *
 * Each EP does as much of a unit as it is fast (kernels/common/uneven.h), so that with the time
 * c_k(u) of unit u on the team's cores of EP k it takes
 *     t(u) = f(u) / sum_k 1 / c_k(u)
 * where f(u) is what was measured of the team, TUN_SPAN_LOSS before: the last part of a unit, and
 * what the cores wait for each other at its end. Ratios are kept, not times: so where an EP becomes
 * slower, its teams do, too.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_SPAN_LOSS 1.1

/** tun_span_ns() - t(@unit) of a team of @group; < 0 if a cost is unknown. */
double tun_span_ns(const struct tun_problem *p, const struct pl_group *group, size_t unit);

/** tun_span_learn() - takes what @unit took on a team of @group. Without memory it learns
 * nothing. */
void tun_span_learn(struct tun_problem *p, const struct pl_group *group, size_t unit, double ns);

/** tun_span_carry() - gives @to what @from knows of teams over its EPs. @eps: [@from's EPs], which
 * EP of @to each is; SIZE_MAX: gone, and its teams too. Return: 0, -ENOMEM. */
int tun_span_carry(const struct tun_problem *from, const size_t *eps, struct tun_problem *to);
/** tun_span_scale() - a team of @group takes @factor times as long for the units @first to @last.
 * Return: 0, -ENOMEM. */
int tun_span_scale(struct tun_problem *p, const struct pl_group *group, size_t first, size_t last,
                   double factor);

/** tun_group_watts() - Return: of the cores of one team of @group. */
double tun_group_watts(const struct tun_problem *p, const struct pl_group *group);
