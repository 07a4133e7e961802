/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/search_table.h - the one table of searches
 *
 * Plain data: names, whether they read costs, help. tuner/search/search.c makes the list of
 * algorithms from it; help texts, completions and the check of planner.algorithm come from it too.
 * pipectl does not link the tuner: tuner/pipesim/search_names.c prints it for pipectl.
 *
 * A unit test compares what a row says with what the search does.
 */
#pragma once

#include <stdbool.h>

/* How nsga2 writes a plan as genes (tuner/search/staged.h). */
enum tun_encoding {
    TUN_ENCODING_SPE, /* split points: where each place begins */
    TUN_ENCODING_NE,  /* the place of every unit */
};

/**
 * TUN_SEARCHES() - FIRST(id, name, reads_costs, what) for the default, NEXT(the same) for
 * the others
 *
 * id: of its struct tun_algorithm; id_code is the struct tun_search_code that runs it. name: as
 * users type it. reads_costs: what it proposes comes from the cost table; the others only measure.
 * what: one line of help.
 */
#define TUN_SEARCHES(FIRST, NEXT)                                                                  \
    FIRST(tun_exact, "exact", true,                                                                \
          "the best plan of the whole space for the cost table, which every trial corrects")       \
    NEXT(tun_shisha, "shisha", false,                                                              \
         "Shisha: a seed by merging light units, then units move from the slowest stage")          \
    NEXT(tun_pipe_search, "pipe-search", false,                                                    \
         "configurations of each stage count by how evenly they cut the weights (Pipe-search)")    \
    NEXT(tun_pipe_search_database, "pipe-search-database", false,                                  \
         "the same trials from a sorted list of all configurations, as the paper keeps it")        \
    NEXT(tun_pipe_it, "pipe-it", true,                                                             \
         "Pipe-it: layers flow down a pipeline of cores, neighbours merge while that helps; one "  \
         "trial of what its time matrix predicts")                                                 \
    NEXT(tun_exhaustive, "exhaustive", false, "every plan of a space, in a fixed order")           \
    NEXT(tun_random_walk, "random", false, "plans drawn at random, none twice")                    \
    NEXT(tun_hill_climbing, "hill-climbing", false,                                                \
         "from a random plan to better neighbours, until none is better")                          \
    NEXT(tun_hill_climbing_seeded, "hill-climbing-seeded", false,                                  \
         "hill climbing from Shisha's seed")                                                       \
    NEXT(tun_annealing, "annealing", false, "simulated annealing from a random plan")              \
    NEXT(tun_annealing_seeded, "annealing-seeded", false,                                          \
         "simulated annealing from Shisha's seed")                                                 \
    NEXT(tun_nsga2, "nsga2", true,                                                                 \
         "NSGA-II for many objectives, on twice as many places each stage (hierarchical DSE)")

/* "exact, shisha, ...": a string literal, for messages and help. */
#define TUN_SEARCH_FIRST_NAME(id, name, reads_costs, what) name
#define TUN_SEARCH_NEXT_NAME(id, name, reads_costs, what) ", " name
#define TUN_SEARCH_NAMES TUN_SEARCHES(TUN_SEARCH_FIRST_NAME, TUN_SEARCH_NEXT_NAME)
