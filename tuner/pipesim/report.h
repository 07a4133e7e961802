/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/pipesim/report.h - the page of `pipesim report`: figures of the papers, redrawn from runs
 */
#pragma once

#include "apps/page/page.h"
#include "tuner/pipesim/described.h"
#include "tuner/pipesim/run.h"

struct psim_report {
    FILE *to;
    uint64_t seed;
    char error[PSIM_ERROR_MAX]; /* of the last call that failed */
};

/** psim_case_run() - without noise or contention. @o: its seed counts from r->seed; NULL: defaults.
 * Return: 0 or -errno with r->error. */
int psim_case_run(struct psim_report *r, const struct psim_case *c, const char *algorithm,
                  const struct tun_options *o, struct psim_run *ret);

/** psim_add_plan() - adds to @row, as @key, the plan that a search ends with by the costs @told,
 * and its frames/s and frames/J by the truth. Return: 0 or -errno with r->error. */
int psim_add_plan(struct psim_report *r, const struct psim_case *c, const struct tun_problem *told,
                  const char *algorithm, const char *key, json_t *row);

/* The sections, each a chart or table and a sentence. Return: 0 or -errno with r->error. */
int psim_report_convergence(struct psim_report *r); /* Shisha fig. 4 */
int psim_report_quality(struct psim_report *r);     /* Shisha fig. 5 */
int psim_report_seeds(struct psim_report *r);       /* Shisha fig. 6 */
int psim_report_heuristics(struct psim_report *r);  /* Shisha fig. 7 and 8 */
int psim_report_alpha(struct psim_report *r);       /* Shisha fig. 9 */
int psim_report_top_ten(struct psim_report *r);     /* Pipe-search fig. 1 */
int psim_report_timeline(struct psim_report *r);    /* Pipe-search fig. 3 */
int psim_report_balance(struct psim_report *r);     /* Pipe-search fig. 4 */
int psim_report_hints(struct psim_report *r);       /* Pipe-search table 5 */
int psim_report_ranks(struct psim_report *r);       /* Pipe-search table 7 */
int psim_report_governors(struct psim_report *r);   /* Pipe-search table 6 */
int psim_report_pipe_it(struct psim_report *r);     /* Pipe-it tables III to VIII */
int psim_report_splits(struct psim_report *r);      /* Pipe-it fig. 8 and 9 */
int psim_report_speed_up(struct psim_report *r);    /* Pipe-it fig. 12 */
int psim_report_dse(struct psim_report *r);         /* hierarchical DSE fig. 4 */
int psim_report_front(struct psim_report *r);       /* throughput against latency */
