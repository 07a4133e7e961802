/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/eval.h - what a plan should do by a cost table: the one place with these formulas
 *
 * For units i..j on a team of kind k and width w:
 *     T = handoff_ns + (i > 0 ? handoff_ns_per_byte * in_bytes[i] : 0) + sum_{u=i..j} cost[k][w][u]
 * A stage with teams t has the period 1 / sum_t 1/T_t (frames are dealt by speed); the plan's
 * bottleneck is its longest period; throughput is 1 / bottleneck (Pipe-it eq. 9, 11). The latency
 * of the worst frame meets the slowest team of every stage: sum over stages of max_t T_t. The
 * energy of a frame is  sum over stages of  sum_t share_t * T_t * w_t * watts[k_t]  with share_t
 * proportional to 1/T_t, in nJ.
 */
#pragma once

#include "tuner/problem.h"

struct tun_outcome {
    double bottleneck_ns, latency_ns, energy_nj;
    size_t stage_count;
    double stage_ns[PL_STAGE_MAX];              /* period of the stage, its teams counted */
    double team_ns[PL_STAGE_MAX][PL_GROUP_MAX]; /* T of one team of the group */
};

/**
 * tun_eval() - @plan: valid for the problem (pl_plan_check with tun_eps)
 * Return: 0, or TUN_E_UNKNOWN when a cost that the plan needs is unknown. Pure; any thread.
 */
enum { TUN_E_UNKNOWN = 1 };
int tun_eval(const struct tun_problem *p, const struct pl_plan *plan, struct tun_outcome *ret);

/** tun_team_ns() - T of one team for units first..last; < 0 if a cost is unknown. */
double tun_team_ns(const struct tun_problem *p, size_t first, size_t last, size_t kind,
                   size_t width);

/** tun_fits() - the plan gives out no more cores than there are and keeps within the bounds that
 * concern its shape (stages_max, one_kind_stages). */
bool tun_fits(const struct tun_problem *p, const struct pl_plan *plan);

/**
 * tun_better() - is outcome @a to be preferred to @b by the problem's objective
 * THROUGHPUT compares bottlenecks alone (slack is the solver's, see tuner/solve.h); LATENCY and
 * POWER prefer what keeps the bounds, then the lower figure, then the lower bottleneck.
 */
bool tun_better(const struct tun_problem *p, const struct tun_outcome *a,
                const struct tun_outcome *b);
