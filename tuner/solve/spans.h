/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/spans.h - plans of one stage whose teams have cores of several EPs
 *
 * Teams of one EP cannot share a unit across EPs, so the lowest latency of a frame may need such a
 * team, and a deadline too. All are tried that are alike and run all units: every number of cores
 * of two to 1 + PL_ALSO_MAX EPs, up to PL_SPAN_MAX, and every number of teams. Where that would be
 * more than TUN_SPANS_TRIED, a team has all cores of an EP or none. EPs that are held (struct
 * tun_ep) are left out. The fastest EP of a team comes first: its primitives run.
 */
#pragma once

#include "tuner/oneboard/oneboard.h"
#include "tuner/oneboard/space.h"

#define TUN_SPANS_TRIED 4096u
#define TUN_SPAN_GAIN 0.03 /* by which it must be better, for it is less certain */

/**
 * tun_spans_try() - takes the best such plan into @ret where it is better
 * @outcome: of the solution in @ret so far: 0 or TUN_E_IMPOSSIBLE
 *
 * Better is, by objective: a bottleneck that is less, or within the slack, and less latency
 * (THROUGHPUT); less latency; less energy; each by TUN_SPAN_GAIN. Or it alone keeps the bounds.
 * Return: the outcome with the answer.
 */
int tun_spans_try(const struct tun_problem *p, const struct tun_space_options *o, int outcome,
                  struct tun_solution *ret);
