/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/eval.h - what a plan should do by a cost table: the one place with these formulas
 *
 * For units i..j on a team of EP k and width w that takes n frames at once (n = 1: one):
 *     T = handoff_ns + (i > 0 ? handoff_ns_per_byte * in_bytes[i] : 0)
 *         + sum_{u=i..j} cost[k][w][u] * f[k][u](n)         time a frame; f: tuner/problem.h
 *     L = n > 1 ? batch_wait_ns + n T : T                   how long a frame stays in the team
 * A stage with teams t has the period 1 / sum_t 1/T_t (frames are dispatched by speed); the plan's
 * bottleneck is its longest period; throughput is 1 / bottleneck (Pipe-it eq. 9, 11). The latency
 * of the worst frame meets the slowest team of every stage: sum over stages of max_t L_t; a frame
 * of several waits for company and then for all of them. The energy of a frame is  sum over stages
 * of  sum_t share_t * T_t * w_t * watts[k_t]  with share_t proportional to 1/T_t, in nJ. Over
 * several boards see tuner/eval_boards.h.
 */
#pragma once

#include "tuner/outcome.h"

/**
 * tun_eval() - @plan: valid for the problem (pl_plan_check with tun_eps)
 * Return: 0, or TUN_E_UNKNOWN when a cost that the plan needs is unknown. Pure; any thread.
 */
int tun_eval(const struct tun_problem *p, const struct pl_plan *plan, struct tun_outcome *ret);

/** tun_fits() - the plan gives out no more cores than there are and keeps within the bounds that
 * concern its shape (stages_max, one_ep_stages). */
bool tun_fits(const struct tun_problem *p, const struct pl_plan *plan);

/** tun_figure() - Return: what the objective asks for: bottleneck, latency or energy. */
double tun_figure(const struct tun_problem *p, const struct tun_outcome *o);

/** tun_keeps() - Return: the outcome keeps the bounds on period and latency. */
bool tun_keeps(const struct tun_problem *p, const struct tun_outcome *o);

/** tun_missed() - Return: by how much the outcome misses the bounds, relatively, those of boards on
 * energy included; 0: it keeps them. */
double tun_missed(const struct tun_problem *p, const struct tun_outcome *o);

/**
 * tun_better() - Return: the problem's objective prefers outcome @a to @b
 *
 * THROUGHPUT compares bottlenecks alone (slack is the solver's, see tuner/solve/solve.h); LATENCY
 * and POWER prefer what keeps the bounds, then the lower figure, then the lower bottleneck.
 */
bool tun_better(const struct tun_problem *p, const struct tun_outcome *a,
                const struct tun_outcome *b);
