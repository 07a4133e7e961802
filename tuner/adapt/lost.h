/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/lost.h - plans that were not better than another one, and the machine of that moment
 *
 * A plan that lost the turns (tuner/adapt/turns.h) is not tried again instead of the same plan
 * until the machine differs clearly. The machine is one figure for each EP: the mean over units of
 * the log of what a unit costs on one core, by the table corrected for frequencies and slowdowns. A
 * difference of TUN_LOST_CLEAR in one of them, or another set of EPs or cores, is clear.
 *
 * Plain data and functions; one thread at a time; no allocation. Zeroed: nothing has lost.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_LOST_MAX 8u          /* the oldest is forgotten first */
#define TUN_LOST_CLEAR 0.1397619 /* log(1.15) */

struct tun_lost {
    size_t at, count;
    struct tun_lost_pair {
        struct pl_plan kept, lost;
        size_t ep_count;
        uint16_t cores[PL_EP_MAX];
        double level[PL_EP_MAX];
    } pairs[TUN_LOST_MAX];
};

/** tun_cost_level() - Return: the figure of an EP: the mean over units of the log of their cost. */
double tun_cost_level(const struct tun_problem *p, size_t ep);
/** tun_lost_add() - @lost was not better than @kept. @now: the corrected problem; plans are of its
 * EPs. */
void tun_lost_add(struct tun_lost *l, const struct tun_problem *now, const struct pl_plan *kept,
                  const struct pl_plan *lost);
/** tun_lost_has() - Return: @challenger lost against @incumbent on a machine like @now. */
bool tun_lost_has(const struct tun_lost *l, const struct tun_problem *now,
                  const struct pl_plan *incumbent, const struct pl_plan *challenger);
