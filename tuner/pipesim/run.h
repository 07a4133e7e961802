/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/run.h - a simulated machine, a trial on it, and one search from start to end */
#pragma once

#include "tuner/pipesim/described.h"
#include "tuner/search/random.h"
#include "tuner/search/search.h"

/* The truth, which a search does not see. */
struct psim_machine {
    const struct tun_problem *truth; /* borrowed */
    double slow[PL_EP_MAX];          /* contention: factor on every cost of the EP, 1: none */
    double noise;                    /* relative sigma of a mean measured in a trial */
    unsigned frames;                 /* per trial; 0: 10 */
    struct tun_random random;
};
/** psim_machine() - Return: one without noise or contention, with the usual frames. */
struct psim_machine psim_machine(const struct tun_problem *truth, uint64_t seed);

/** psim_err() - gives each unit and EP of @p, on all widths, a cost that is wrong by a factor of
 * its own. @sigma: its relative standard deviation. */
void psim_err(struct tun_problem *p, double sigma, struct tun_random *random);

/**
 * psim_trial() - runs a plan on the machine: fills measured figures, samples and the time it took
 *     spent = latency (fill) + frames * bottleneck
 * @samples: room for tun_core_count * unit_count samples, borrowed by the trial.
 */
void psim_trial(struct psim_machine *m, const struct pl_plan *plan, struct tun_sample *samples,
                struct tun_trial *ret);

struct psim_run {
    char algorithm[40];
    struct tun_trial *log; /* owned; log[result] serves */
    size_t count, result;
    double bottleneck_ns; /* of the result, by the truth with its contention */
    double latency_ns;
    double optimum_ns;                   /* exact solve of the truth with its contention, slack 0 */
    struct tun_outcome outcome, optimum; /* of the result and of that solve, all figures */
    bool possible;   /* there is a plan that keeps the bounds; else optimum is the fastest one */
    double ratio;    /* result / optimum in what the objective asks for, 1: as good as can be */
    double tuning_s; /* trials and what the search itself took on this machine */
    double own_s;    /* what the search itself took: start (a database) and every ask */
    double explored; /* trials / plans in its space; 0 when the space is endless */
    double space;
};
/** psim_run() - one search to its end. @p: what the search is told (may be wrong); @m: the truth.
 * Return: 0 or -errno with @ret_error. */
int psim_run(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
             struct psim_machine *m, char ret_error[PSIM_ERROR_MAX], struct psim_run *ret);
void psim_run_deinit(struct psim_run *r);

/** psim_best() - the least bottleneck of a space, every plan of it judged (the papers' exhaustive
 * search, without a log of its trials). @space: not DEFAULT. @ret: the first such plan; NULL: not
 * asked for. Return: its bottleneck, ns. */
double psim_best(const struct tun_problem *p, enum tun_space space, struct pl_plan *ret);

/** psim_cut_text() - "[6,5,10]", as the Pipe-search paper writes a plan: units of each stage. */
#define PSIM_CUT_TEXT 64u
void psim_cut_text(const struct pl_plan *plan, char ret[PSIM_CUT_TEXT]);

/** psim_rank() - place of a plan's cut among those of as many stages, by rising CV (Pipe-search,
 * table 7), the seed being 1. @ret_cv: its CV, eq. 3, a fraction; NULL: not asked for.
 * Return: the place; 0: no memory. */
size_t psim_rank(const struct tun_problem *p, const struct pl_plan *plan, double *ret_cv);
