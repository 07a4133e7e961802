/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/measure.h - what every row of every op takes on one core
 *
 * Rows are timed where they will run: the model's ops run in order, a window of them at a time, on
 * one frame's memory, and each op takes another of its rows at each pass. So a row finds in the
 * caches what it will find there: what the op before it wrote, and weights that other ops have
 * pushed out. Ops of the same shapes share their samples. Of the rows of a window all are packed at
 * the same time, which is why a window holds some tens of megabytes and not the model.
 */
#pragma once

#include <stdatomic.h>

#include "kernels/choice.h"

struct krn_measure_options {
    int cpu;                  /* core to measure on; < 0: wherever the thread runs */
    uint64_t budget_ns;       /* no longer than about so; every row is run at least once */
    size_t frames;            /* samples of a row that is worth it; 0: 20 */
    bool inexact;             /* INEXACT rows too */
    const char *only;         /* as krn_net_new() has it: named rows alone, where there are any */
    const _Atomic bool *stop; /* borrowed, may be NULL: true: give up */
};

struct krn_time {
    size_t op;
    const struct krn_variant *row; /* FUSED: of op and op + 1 */
    double ns;                     /* median of the samples */
    size_t samples;
    size_t bytes; /* that the row keeps packed for this op */
};

/* Changes of form beside one op (kernels/form.h), medians; 0 where no row of the op asks for it. */
struct krn_form_time {
    double in_ns;  /* of input 0 into planes */
    double out_ns; /* of output 0 from planes */
    bool may_stay; /* krn_form_may_stay(): output 0 as planes, where the next op takes those */
};

/* Sorted by op; of an op at least one row that is not FUSED. */
struct krn_times {
    size_t op_count, count;
    struct krn_time *times;      /* [count], owned; without changes of form */
    struct krn_form_time *forms; /* [op_count], owned; NULL: no row is of the planes form */
    uint64_t took_ns;
};
#define KRN_TIMES_NULL ((struct krn_times){0})

/**
 * krn_measure() - times the rows of every op of @m
 * A row of the planes form runs on what it was converted to; the changes before and behind it are
 * timed by themselves. Not timed: references where another row can run the op, and the portable
 * build of a row that is there for this CPU. Rows more than twice as slow as the fastest are given
 * up after 3 samples. Threads: any; blocks for the budget, makes one thread, allocates a frame's
 * memory beside the packed weights. Return: 0, -ENOMEM, -EAGAIN (no thread), -ECANCELED (stopped),
 * -EOPNOTSUPP (an op that no row can run).
 */
int krn_measure(const struct mdl_model *m, const struct krn_measure_options *o,
                struct krn_times *ret);
void krn_times_deinit(struct krn_times *t);
