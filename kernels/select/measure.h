/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/measure.h - measures the time of every primitive of every op on one core
 *
 * Primitives are timed in context: the model's ops run in order, a window of them at a time, on one
 * frame's memory, and each op uses another of its primitives in each pass. So a primitive finds
 * realistic caches: the previous op's output is there, and other ops have evicted its weights. Ops
 * of the same shapes share their samples. All primitives of a window are packed at the same time,
 * so a window holds some tens of megabytes, not the whole model.
 *
 * Samples that something disturbed (kernels/select/measure_watch.h) are left out as long as enough
 * others are there, and every time has an uncertainty (kernels/select/figure.h).
 */
#pragma once

#include <stdatomic.h>

#include "kernels/choice.h"
#include "kernels/select/measure_watch.h"

struct krn_measure_options {
    int cpu;            /* core to measure on; < 0: wherever the thread runs */
    uint64_t budget_ns; /* approximate limit; every primitive runs at least once */
    /* Then it is enough that some primitive of each op has run, the first of the table that can; 0:
     * never. Only frames that take seconds come near it. */
    uint64_t limit_ns;
    size_t frames; /* samples of each promising primitive; 0: 20 */
    bool inexact;  /* INEXACT primitives too */
    /* as in krn_net_new(): only named primitives, if an op has any */
    const char *only;
    const _Atomic bool *stop;              /* borrowed, may be NULL; true: stop early */
    const struct krn_watch_clocks *clocks; /* borrowed; NULL: this computer's */
    /* Times from before, of the same model; borrowed, may be NULL. Then only ops with @wanted
     * [op_count], and those of the same shapes, are measured; the others run by their fastest. */
    const struct krn_times *known;
    const bool *wanted;
};

struct krn_time {
    size_t op;
    const struct krn_primitive *primitive; /* FUSED: of op and op + 1 */
    double ns;                             /* median of the samples */
    size_t samples;                        /* that nothing disturbed */
    size_t bytes;                          /* packed weights of the primitive for this op */
    double sigma_ns;                       /* standard uncertainty of ns */
    size_t disturbed;                      /* samples left out */
};

/* Layout conversions beside one op (kernels/common/layout.h), medians; 0 if no primitive of the
 * op needs them. */
struct krn_layout_time {
    double in_ns;  /* of input 0 to NCHW */
    double out_ns; /* of output 0 from NCHW */
    bool may_stay; /* krn_nchw_may_stay(), and the next op has a primitive that reads NCHW */
};

/* Sorted by op; each op has at least one primitive that is not FUSED. */
struct krn_times {
    size_t op_count, count;
    struct krn_time *times;          /* [count], owned; without layout conversions */
    struct krn_layout_time *layouts; /* [op_count], owned; NULL: no primitive is on NCHW */
    uint64_t took_ns;
};
#define KRN_TIMES_NULL ((struct krn_times){0})

/* With this share of samples left out a measurement is restless: what kept the others waiting also
 * shared caches and memory with the clean ones, some primitives' more than others'. So no time is
 * surer than to 5 %. */
#define KRN_MEASURE_RESTLESS 0.2

/**
 * krn_measure() - times the primitives of every op of @m
 * An NCHW primitive runs on converted data; the conversions before and after it are timed
 * separately. Not timed: references of ops that another primitive can run, and the portable build
 * of a primitive that has a build for this CPU. A primitive more than twice as slow as the fastest
 * is dropped after 3 samples, if the uncertainties leave no doubt. Threads: any; blocks for the
 * budget, starts one thread, allocates a frame's memory beside the packed weights.
 * Return: 0, -ENOMEM, -EAGAIN (no thread), -ECANCELED (stopped), -EOPNOTSUPP (an op that no
 * primitive can run).
 */
int krn_measure(const struct mdl_model *m, const struct krn_measure_options *o,
                struct krn_times *ret);
void krn_times_deinit(struct krn_times *t);

/** krn_times_of() - Return: the time of @p for @op; NULL: none. */
const struct krn_time *krn_times_of(const struct krn_times *t, size_t op,
                                    const struct krn_primitive *p);
/** krn_times_like() - takes over what @from, the times of model @of, has for the ops of @m: those
 * of the same shapes, FUSED ones where the next op's are the same, too
 * @ret: the caller's, krn_times_deinit(). @wanted: [m->op_count]: ops without
 * times. Return: 0, -ENOMEM. */
int krn_times_like(const struct krn_times *from, const struct mdl_model *of,
                   const struct mdl_model *m, struct krn_times *ret, bool *wanted);
/** krn_times_copy() - Return: 0, -ENOMEM. @ret: the caller's, krn_times_deinit(). */
int krn_times_copy(const struct krn_times *t, struct krn_times *ret);
/** krn_times_join() - adds newer times of the same model: krn_figure_join() of each that is in
 * both. Return: 0; -ENOMEM, and @t is as before. */
int krn_times_join(struct krn_times *t, const struct krn_times *newer);
/** krn_times_disturbed() - Return: the share of samples that were left out. */
double krn_times_disturbed(const struct krn_times *t);
