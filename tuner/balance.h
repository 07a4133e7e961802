/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/balance.h - the first planner: cut a chain of units so that the slowest stage is as fast as
 * it can be
 *
 * Pure functions: no threads, files or clocks. With weights for costs this is the even split of the
 * Pipe-search paper (equations 1 and 2 give the weights); with measured times it is the best plan
 * of its kind.
 */
#pragma once

#include <stddef.h>

#include "pipeline/plan.h"

/**
 * tun_balance() - one stage per core place given, in the order given, cuts placed exactly
 * @cost: [unit_count], any positive unit (weight, or ns on the reference EP); @unit_count: 1..65535
 * @eps: the machine; @cost_on: NULL, or [eps->count][unit_count] measured ns per EP, < 0 where
 * unknown: then cost/speed is taken
 *
 * Considers pipelines of one-core stages over all cores (EPs ordered fastest first and reversed),
 * minimises max over stages s of  sum_{u in s} cost(u, ep(s))                    (chains-on-chains,
 * exact by dynamic programming) and drops stages that would be empty. @stages_max bounds the stage
 * count (0: as many as there are cores). Return: 0, or -EINVAL for no units or no cores.
 * *ret_bottleneck in the unit of cost.
 */
int tun_balance(const double *cost, const double *cost_on, size_t unit_count,
                const struct pl_ep_set *eps, size_t stages_max, struct pl_plan *ret,
                double *ret_bottleneck);
