/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/search_private.h - what the algorithms see of a search. Only files of tuner/ include it. */
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
    bool done;
    void *state;                /* owned, the algorithm's */
    char reason[TUN_ERROR_MAX]; /* start() may write why it refuses: a sentence */
};

extern const struct tun_algorithm tun_exact, tun_shisha, tun_pipe_search, tun_pipe_search_database,
    tun_pipe_it, tun_exhaustive, tun_random_walk, tun_hill_climbing, tun_hill_climbing_seeded,
    tun_annealing, tun_annealing_seeded;

/** tun_search_best() - index of the best measured trial (tun_better) that ran to its end,
 * SIZE_MAX for none. */
size_t tun_search_best(const struct tun_search *s);
