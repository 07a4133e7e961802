/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/mix.h - one plan for all models: what they wish, what the cores can do for them, and
 * whether their deadlines hold
 *
 * A model with a rate is planned for it. One without is planned for what its weight is worth of the
 * cores' time: its rate is mu weight over the core time of its frame, with the largest mu that
 * keeps all wished rates; without any wished rate, the largest that the cores have. Rates that
 * cannot all be kept are kept in part, the same part of each.
 *
 * Plain data: dmn_mix_take() copies what the loop thread knows, and any thread may go on with it.
 */
#pragma once

#include "daemon/config/wishes.h"
#include "daemon/models/models.h"
#include "tuner/solve/promise.h"

struct dmn_mixed {
    char name[64];
    struct dmn_wishes wishes;
    struct tun_problem p;    /* owned */
    struct tun_problem slow; /* owned; p99.9 of its units' times, as far as they are normal */
    struct pl_plan plan;     /* by the mix; stage_count 0: it has no routes, or too many teams */
};

struct dmn_mix {
    size_t count;
    double floor;
    struct dmn_mixed *models; /* [count], owned */
    struct tun_wish wishes[TUN_MIX_MAX];
    struct tun_promise promise; /* owned */
};
#define DMN_MIX_NULL ((struct dmn_mix){0})

/** dmn_mix_take() - of all models that serve here. @ret: dmn_mix_deinit(), also after a failure.
 * Threads: the loop thread. Return: 0; -ENODATA: there is none; -E2BIG: more than TUN_MIX_MAX;
 * -ENOMEM. */
int dmn_mix_take(const struct dmn_models *models, double floor, struct dmn_mix *ret);
/** dmn_mix_solve() - Threads: any; takes some milliseconds, seconds with dozens of models. Return:
 * 0 or -errno. */
int dmn_mix_solve(struct dmn_mix *x);
void dmn_mix_deinit(struct dmn_mix *x);
