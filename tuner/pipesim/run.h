/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/run.h - one search on a simulated machine */
#pragma once

#include "tuner/pipesim/data_files.h"
#include "tuner/pipesim/simulated_machine.h"

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
