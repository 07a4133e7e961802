/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/comparison.h - many searches side by side: one row a network and machine, one score
 * an algorithm
 */
#pragma once

#include "tuner/pipesim/platform.h"
#include "tuner/pipesim/run.h"

#define PSIM_ALGORITHMS_MAX 16u

struct psim_score {
    bool skipped;         /* its space is too large for it; the other fields are 0 */
    double ratio;         /* bottleneck of its result / optimum of the whole space */
    double latency_ratio; /* worst-frame latency / that of one worker on every core */
    double trials, space;
    double tuning_s;   /* until it stopped: trials and its own time */
    double converge_s; /* until the trial that it ended with */
    double own_s;      /* database and thinking, measured on the machine that runs pipesim */
    double near;       /* share of its trials within 1.5 x of the optimum (Pipe-search table 4) */
};

struct psim_row {
    char network[64], platform[64];
    double optimum_ns, bound_ns; /* exact, and tun_bound_ns() */
    struct psim_score scores[PSIM_ALGORITHMS_MAX];
};

struct psim_table {
    size_t algorithm_count, row_count, room;
    const char *algorithms[PSIM_ALGORITHMS_MAX]; /* borrowed */
    struct psim_row *rows;                       /* owned */
};

/** psim_table_init() - @algorithms: at most PSIM_ALGORITHMS_MAX names, borrowed. */
void psim_table_init(struct psim_table *t, const char *const *algorithms, size_t count);
void psim_table_deinit(struct psim_table *t);

/** psim_table_add() - runs every algorithm on one network and machine. Return: 0 or -errno with
 * @ret_error. */
int psim_table_add(struct psim_table *t, const struct psim_network *network,
                   const struct psim_platform *platform, const struct tun_options *options,
                   char ret_error[PSIM_ERROR_MAX]);

/** psim_table_column() - index of an algorithm, SIZE_MAX if it is not in the table. */
size_t psim_table_column(const struct psim_table *t, const char *algorithm);

/* Over the rows where the algorithm ran: arithmetic means of trials and near; geometric means of
 * ratio and of the times; the worst ratio. */
struct psim_summary {
    size_t rows;
    double ratio, ratio_worst, trials, tuning_s, converge_s, near, optimal; /* share within 1 % */
};
void psim_table_summary(const struct psim_table *t, size_t column, struct psim_summary *ret);

/** psim_table_print() - the summary, aligned for a terminal. */
void psim_table_print(const struct psim_table *t, FILE *to);
/** psim_table_print_rows() - everything, one line a row, as a Markdown table. */
void psim_table_print_rows(const struct psim_table *t, FILE *to);
