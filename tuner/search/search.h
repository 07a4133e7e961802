/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search.h - one shape for all searches: ask for a plan, tell what it measured, until done
 *
 *     tun_search_new("shisha", &problem, &options, error, &s);
 *     while (tun_search_ask(s, &plan) == 0) { ...run it...; tun_search_tell(s, &trial); }
 *     tun_search_result(s)
 *
 * A search is a pure state machine: no threads, files or clocks; all chance comes from the seed, so
 * the same problem, seed and trials give the same questions. One thread at a time; ask() may think
 * for milliseconds. A caller that gives up just frees it. The trial log is kept here, the same for
 * every algorithm.
 */
#pragma once

#include "tuner/eval.h"

/* One unit timed on one team shape during a trial. */
struct tun_sample {
    uint16_t kind, width;
    uint32_t unit;
    double ns;    /* mean */
    double sigma; /* relative standard error of that mean */
};

/* What running a plan showed. */
struct tun_trial {
    struct pl_plan plan;
    struct tun_outcome measured; /* energy_nj 0 and latency_ns 0: not measured */
    double predicted_ns; /* bottleneck by the table before it ran; 0: unknown. Set by tell() */
    double spent_ns;     /* time the trial took, all told */
    uint64_t frames;
    bool stopped; /* given up early because clearly worse: measured is a lower bound */
    bool failed;  /* could not be run; measured is void */
    const struct tun_sample *samples; /* borrowed during tell(); NULL in the log */
    size_t sample_count;
};

/* Which plans an algorithm may propose, smallest first. */
enum tun_space {
    TUN_SPACE_DEFAULT, /* the algorithm's own */
    TUN_SPACE_CUTS,    /* Pipe-search: cuts; stage count decides who runs what (tuner/places.h) */
    TUN_SPACE_PLACES,  /* Shisha: cuts, and any order of one-core stages */
    TUN_SPACE_ALL,     /* every plan of tuner/solve.h */
};

struct tun_options {
    uint64_t seed;
    unsigned alpha;     /* trials without gain until it stops; 0: 10 (Shisha, section 6.1) */
    unsigned heuristic; /* shisha: 1..6 (its table 1); 0: 3 */
    size_t trials_max;  /* stop after so many; 0: the algorithm's own limit */
    size_t top;         /* exact: candidates; 0: 5 */
    enum tun_space space;
};

struct tun_search;

/* An algorithm; its state is zeroed memory of state_bytes, freed after stop(). */
struct tun_algorithm {
    const char *name; /* as users type it */
    const char *what; /* one line for help */
    size_t state_bytes;
    /* start: Return 0, -EINVAL, -ENOMEM. ask: 0, or TUN_E_DONE. result: the log index of the trial
     * that should serve; NULL: the best measured. stop, space: may be NULL. */
    int (*start)(struct tun_search *s);
    int (*ask)(struct tun_search *s, struct pl_plan *ret);
    void (*tell)(struct tun_search *s, const struct tun_trial *t);
    size_t (*result)(const struct tun_search *s);
    void (*stop)(struct tun_search *s);
    double (*space)(const struct tun_problem *p,
                    const struct tun_options *o); /* plans in its space */
};

enum { TUN_E_DONE = 3 };

/** tun_algorithms() - all, the default first. */
const struct tun_algorithm *const *tun_algorithms(size_t *ret_count);
const struct tun_algorithm *tun_algorithm_find(const char *name);

/**
 * tun_search_new() - @p: copied. @o: NULL: defaults. Costs may be unknown where the algorithm does
 * not read them (only exact and pipe-it do; they fill holes by tuner/learn.h).
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
/** tun_search_problem() - the search's own copy, as corrected by what it was told. */
const struct tun_problem *tun_search_problem(const struct tun_search *s);
const struct tun_algorithm *tun_search_algorithm(const struct tun_search *s);
