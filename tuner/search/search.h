/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/search.h - one shape for all searches: ask for a plan, tell what it measured, until
 * done
 *
 *     tun_search_new("shisha", &problem, &options, error, &s);
 *     while (tun_search_ask(s, &plan) == 0) { ...run it...; tun_search_tell(s, &trial); }
 *     tun_search_result(s)
 *
 * A search is a pure state machine without threads, files or clocks. All randomness comes from the
 * seed: the same problem, seed and trials give the same questions. One thread at a time; ask() may
 * take milliseconds. A caller may free a search at any time. Every algorithm's trials are logged
 * here.
 */
#pragma once

#include "tuner/eval.h"
#include "tuner/search/search_table.h"

/* Which plans an algorithm may propose, smallest first. */
enum tun_space {
    TUN_SPACE_DEFAULT, /* the algorithm's own */
    TUN_SPACE_CUTS, /* Pipe-search: cuts; stage count decides who runs what (tuner/search/places.h)
                     */
    TUN_SPACE_PLACES,    /* cuts, and any order of one-core stages */
    TUN_SPACE_PIPELINES, /* Shisha: cuts, and one team of any EP and width a stage */
    TUN_SPACE_ALL,       /* every plan of tuner/solve/solve.h */
};

#define TUN_HEURISTIC 3u /* "we recommend to use H3" (Shisha, section 6.4) */

struct tun_options {
    uint64_t seed;
    unsigned alpha; /* trials without gain until it stops; 0: 10 (Shisha, section 6.1) */
    /* of Shisha's seed: 1..6 (its table 1); 0: TUN_HEURISTIC, and for shisha its mirror image */
    unsigned heuristic;
    bool drawn_seed;   /* shisha: tunes a random pipeline of N stages instead (its figure 6) */
    bool no_hints;     /* pipe-search: takes units as equally heavy (its table 5) */
    size_t trials_max; /* stop after so many; 0: the algorithm's own limit */
    double enough_ns;  /* stop at the first plan whose bottleneck is at most this; 0: none */
    size_t top;        /* exact: candidates; 0: 5 */
    enum tun_space space;
    /* walks: go on from this plan, or from Shisha's seed where it has no stages or is not in their
     * space, instead of from a random one. NULL: a random one. Borrowed during tun_search_new(). */
    const struct pl_plan *from;
    enum tun_encoding encoding; /* nsga2 */
    unsigned stages;            /* nsga2: the last so many; 1: without a model. 0: all */
};

struct tun_search;

/* How an algorithm runs; its state is zeroed memory of state_bytes, freed after stop(). */
struct tun_search_code {
    size_t state_bytes;
    /* start: Return 0, -EINVAL, -ENOMEM. ask: 0, or TUN_E_DONE. result: the log index of the trial
     * that should serve; NULL: the best measured. tell: NULL: nothing but the log counts. stop,
     * space: may be NULL. */
    int (*start)(struct tun_search *s);
    int (*ask)(struct tun_search *s, struct pl_plan *ret);
    void (*tell)(struct tun_search *s, const struct tun_trial *t);
    size_t (*result)(const struct tun_search *s);
    void (*stop)(struct tun_search *s);
    double (*space)(const struct tun_problem *p, const struct tun_options *o);
};

/* A row of the table of searches (tuner/search/search_table.h). */
struct tun_algorithm {
    const char *name; /* as users type it */
    const char *what; /* one line for help */
    bool reads_costs; /* what it proposes comes from the cost table; the others only measure */
    const struct tun_search_code *code;
};

enum { TUN_E_DONE = 3 };

#define TUN_SEARCH_ROW(id, name, reads_costs, what) extern const struct tun_algorithm id;
TUN_SEARCHES(TUN_SEARCH_ROW, TUN_SEARCH_ROW) /* tun_exact is the default */
#undef TUN_SEARCH_ROW

/** tun_algorithms() - all, the default first. */
const struct tun_algorithm *const *tun_algorithms(size_t *ret_count);
/** tun_algorithm_find() - Return: NULL when no row has this name. */
const struct tun_algorithm *tun_algorithm_find(const char *name);
/** tun_encoding_find() - "spe" or "ne". Return: is it one. */
bool tun_encoding_find(const char *name, enum tun_encoding *ret);
/** tun_algorithm_space() - how many plans its space has; infinite when that cannot be counted. */
double tun_algorithm_space(const struct tun_algorithm *a, const struct tun_problem *p,
                           const struct tun_options *o);

/**
 * tun_search_new() - @p: copied. @o: NULL: defaults. Costs may be unknown where the algorithm does
 * not read them (tun_algorithm.reads_costs; those that do fill holes by tuner/learn.h).
 * @ret_error: a sentence on -EINVAL. Return: 0, -EINVAL (also: no such algorithm), -ENOMEM.
 */
int tun_search_new(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
                   char ret_error[TUN_ERROR_MAX], struct tun_search **ret);
struct tun_search *tun_search_free(struct tun_search *s);

/** tun_search_ask() - the next plan to try. Return: 0, TUN_E_DONE, or -ENOMEM (then done too). */
int tun_search_ask(struct tun_search *s, struct pl_plan *ret);
/** tun_search_tell() - what the plan that was asked for measured. Return: 0 or -ENOMEM. */
int tun_search_tell(struct tun_search *s, const struct tun_trial *t);

/** tun_search_result() - the trial whose plan should serve, or NULL before the first; borrowed. */
const struct tun_trial *tun_search_result(const struct tun_search *s);
/** tun_search_log() - all trials in order, borrowed until the next tell(). */
const struct tun_trial *tun_search_log(const struct tun_search *s, size_t *ret_count);
const struct tun_algorithm *tun_search_algorithm(const struct tun_search *s);
