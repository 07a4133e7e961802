/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/search/search_private.h - what the algorithms see of a search. Only files of tuner/ include
 * it. */
#pragma once

#include "tuner/search/random.h"
#include "tuner/search/search.h"
#include "tuner/search/seen.h"

struct tun_search {
    const struct tun_algorithm *algorithm;
    struct tun_problem problem; /* owned */
    struct tun_options options; /* defaults filled in */
    struct tun_random random;
    struct tun_trial *log; /* owned, grows */
    size_t count, room;
    struct tun_seen seen; /* of the log */
    bool done;
    void *state;                /* owned, the algorithm's */
    char reason[TUN_ERROR_MAX]; /* start() may write why it refuses: a sentence */
};

#define TUN_SEARCH_DECLARE(id, name, reads_costs, takes, what)                                     \
    extern const struct tun_search_code id##_code;
TUN_SEARCHES(TUN_SEARCH_DECLARE, TUN_SEARCH_DECLARE)
#undef TUN_SEARCH_DECLARE

/** tun_search_seen() - Return: the log index of a plan that was measured, or SIZE_MAX. */
static inline size_t tun_search_seen(const struct tun_search *s, const struct pl_plan *plan)
{
    return tun_seen_find(&s->seen, s->log, plan);
}

/** tun_trial_ran() - Return: the plan ran to the end of its trial. */
static inline bool tun_trial_ran(const struct tun_trial *t)
{
    return !t->failed && !t->stopped && isfinite(t->measured.bottleneck_ns) &&
           t->measured.bottleneck_ns > 0;
}

/** tun_search_gains() - Return: the trial ran and is better than that at @best of the log; SIZE_MAX:
 * there is none. */
static inline bool tun_search_gains(const struct tun_search *s, const struct tun_trial *t,
                                    size_t best)
{
    return tun_trial_ran(t) &&
           (best == SIZE_MAX || tun_better(&s->problem, &t->measured, &s->log[best].measured));
}
