/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/search/search_private.h - what the algorithms see of a search. Only files of tuner/ include
 * it. */
#pragma once

#include "tuner/search/random.h"
#include "tuner/search/search.h"

struct tun_search {
    const struct tun_algorithm *algorithm;
    struct tun_problem problem; /* owned */
    struct tun_options options; /* defaults filled in */
    struct tun_random random;
    struct tun_trial *log; /* owned, grows */
    size_t count, room;
    size_t *slots; /* [slot_room], owned: a hash of the log's plans, index + 1 or 0 */
    size_t slot_room;
    bool done;
    void *state;                /* owned, the algorithm's */
    char reason[TUN_ERROR_MAX]; /* start() may write why it refuses: a sentence */
};

#define TUN_SEARCH_DECLARE(id, name, reads_costs, what)                                            \
    extern const struct tun_search_code id##_code;
TUN_SEARCHES(TUN_SEARCH_DECLARE, TUN_SEARCH_DECLARE)
#undef TUN_SEARCH_DECLARE

/** tun_search_seen() - Return: the log index of a plan that was measured, or SIZE_MAX. The groups
 * of a stage are in one order (EP, then width), as all searches write them. */
size_t tun_search_seen(const struct tun_search *s, const struct pl_plan *plan);

/** tun_heuristic_of() - Return: of Shisha's seed, as asked for or as the paper recommends. */
static inline unsigned tun_heuristic_of(const struct tun_search *s)
{
    return s->options.heuristic ? s->options.heuristic : TUN_HEURISTIC;
}

/** tun_seen_reserve() - room for one more trial. Return: 0 or -ENOMEM. */
int tun_seen_reserve(struct tun_search *s);
/** tun_seen_add() - the plan of log[index]; one that is there already stays as it is. */
void tun_seen_add(struct tun_search *s, size_t index);

/** tun_trial_ran() - Return: the plan ran to the end of its trial. */
static inline bool tun_trial_ran(const struct tun_trial *t)
{
    return !t->failed && !t->stopped && isfinite(t->measured.bottleneck_ns) &&
           t->measured.bottleneck_ns > 0;
}

/** tun_search_gains() - Return: the trial ran and is better than that at @best of the log;
 * SIZE_MAX: there is none. */
static inline bool tun_search_gains(const struct tun_search *s, const struct tun_trial *t,
                                    size_t best)
{
    return tun_trial_ran(t) &&
           (best == SIZE_MAX || tun_better(&s->problem, &t->measured, &s->log[best].measured));
}
