/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/mix.h - one plan for all models: what they wish, what the cores can do for them, and
 * whether their deadlines hold
 *
 * A model with a rate is planned for it. One without is planned for what its weight is worth of the
 * cores' time: its rate is mu weight over the core time of its frame, with the largest mu that
 * keeps all wished rates; without any wished rate, the largest that the cores have. Rates that
 * cannot all be kept are kept in part, the same part of each. No model is planned for more than its
 * max_share of what all cores could do for it.
 *
 * Plain data: dmn_mix_take() copies what the loop thread knows, and any thread may go on with it.
 */
#pragma once

#include "daemon/config/wishes.h"
#include "daemon/models/models.h"
#include "tuner/solve/promise.h"

struct dmn_mixed {
    char name[64];
    uint64_t loaded_ns; /* with the name: which model */
    struct dmn_wishes wishes;
    struct tun_problem p;    /* owned; as its costs are now */
    struct tun_problem slow; /* owned; p99.9 of its units' times, as far as they are normal */
    double level[PL_EP_MAX]; /* of its table, tun_cost_level() */
    struct pl_plan serving;  /* when it was taken */
    /* [units], owned: in how many pieces each can be run, may be run by the mix, and was run when
     * it was taken */
    uint8_t *cut_most, *pieces, *served_pieces;
    double *uncut;       /* [units], owned: of tun_wish */
    bool pinned;         /* by a user: it stays on the EPs of that plan */
    struct pl_plan plan; /* by the mix; stage_count 0: it has no routes, or too many teams */
    /* frames may take a route that is too slow for their deadline, where no other model computes:
     * by plan, and by the one that served */
    bool lags, served_lags;
};

struct dmn_mix {
    size_t count;
    bool apart; /* each model's plan is its own best one, as if it were alone */
    double floor;
    enum tun_share objective;
    struct dmn_mixed *models; /* [count], owned */
    struct tun_wish wishes[TUN_MIX_MAX];
    struct tun_promise promise; /* owned */
    /* of the plans that served when it was taken, with the rates that are planned for: as
     * promise.mix.lambda; and of a least cost as value */
    double served_lambda, served_value;
    bool served_holds; /* all deadlines by these plans, which then keep these bounds; 0: none */
    double served_bound_ns[TUN_MIX_MAX];
};
#define DMN_MIX_ROUNDING 1e-9 /* of what is kept */
#define DMN_MIX_NULL ((struct dmn_mix){0})

/** dmn_mix_take() - of all models that serve here, with floor and objective of the configuration.
 * @apart: each is to be planned for itself. @ret: dmn_mix_deinit(), also after a failure. Threads:
 * the loop thread. Return: 0; -ENODATA: there is none; -E2BIG: more than TUN_MIX_MAX; -ENOMEM. */
int dmn_mix_take(const struct dmn_models *models, bool apart, struct dmn_mix *ret);
/** dmn_mix_solve() - Threads: any; takes some milliseconds, seconds with dozens of models. Return:
 * 0 or -errno. */
int dmn_mix_solve(struct dmn_mix *x);
/** dmn_mix_see_served() - the last part of that: sets served_*, and lags of the models. */
int dmn_mix_see_served(struct dmn_mix *x);
void dmn_mix_deinit(struct dmn_mix *x);
