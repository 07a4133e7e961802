/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/select/measure_private.h - a running measurement; for measure*.c only
 *
 * measure_list.c lists the candidates and judges them by their samples, measure_times.c makes a
 * frame to run on, and times of the samples, measure.c runs passes over the frame.
 */
#pragma once

#include "kernels/bound_primitive.h"
#include "kernels/select/figure.h"
#include "kernels/select/measure.h"

#define KRN_MEASURE_FRAMES KRN_FIGURE_SAMPLES
#define KRN_MEASURE_PATIENCE 3u /* runs for each sample that is wanted, clean or not */
#define KRN_MEASURE_PENDING 64u
#define KRN_MEASURE_CANDIDATES_MAX 24u /* candidates per op, fused ones included */

/* The samples of one primitive. */
struct krn_stat {
    const struct krn_primitive *primitive;
    double samples[KRN_MEASURE_FRAMES];   /* that nothing disturbed */
    double disturbed[KRN_MEASURE_FRAMES]; /* the newest */
    size_t count, disturbed_count, runs;
    bool dropped;
};

/* One primitive of one op. */
struct krn_candidate {
    struct krn_bound bound;
    struct krn_stat *stat; /* shared by ops of the same shapes */
    size_t bytes;
    bool warm; /* has run since it was packed */
    bool unable;
};

/* A sample of a stretch that has not ended. */
struct krn_pending {
    struct krn_stat *stat;
    uint64_t ns;
    bool kept; /* the thread kept its core */
    size_t op;
    struct krn_candidate *judged; /* NULL: a change of layout */
};

struct krn_op_candidates {
    struct krn_candidate *of; /* [count]; they follow each other from op to op */
    size_t count;
    struct krn_stat takes, gives; /* layout conversions; kept for the first op of these shapes */
    size_t same;                  /* the first op of these shapes */
    double share;                 /* share of the model's time, estimated */
    /* It is not run, since it writes nothing or takes too long; its one candidate takes so long. */
    bool still;
    double still_ns;
};

struct krn_measurement {
    const struct mdl_model *m;
    const struct krn_measure_options *o;
    struct krn_op_candidates *ops;
    struct krn_candidate *candidates;
    struct krn_stat *stats;
    size_t candidate_count, stat_count, frames;
    struct krn_watch watch;
    struct krn_pending pending[KRN_MEASURE_PENDING];
    size_t pending_count;
    void **copies; /* of constants: krn_bound_consts() */
    size_t copied;
    struct krn_mem mem;
    uint8_t *arena, *saved, *scratch, **buffers;
    size_t scratch_bytes, buffer_count;
    uint64_t start_ns, window_start_ns, window_end_ns;
    uint64_t limit_end_ns;         /* of the window: then each op needs only one that has run */
    struct mdl_progress *progress; /* borrowed from who measures */
    int error;
};

/** krn_measure_same() - Return: op @a of @m and op @b of @n have the same shapes, types, strides
 * and attributes: what the time of an op depends on. */
bool krn_measure_same(const struct mdl_model *m, size_t a, const struct mdl_model *n, size_t b);

/** krn_measure_list() - lists every op's candidates. Return: 0, -ENOMEM. */
int krn_measure_list(struct krn_measurement *r);

struct krn_figure krn_stat_figure(const struct krn_stat *s);
double krn_stat_median(const struct krn_stat *s);
/** krn_measure_fastest() - Return: the candidate with the lowest median that runs @op alone; NULL:
 * none has a sample. */
struct krn_candidate *krn_measure_fastest(const struct krn_measurement *r, size_t op);
/** krn_measure_judge() - drops @c of @op if its samples show that it will not win. */
void krn_measure_judge(struct krn_measurement *r, size_t op, struct krn_candidate *c);
bool krn_measure_is_done(const struct krn_measurement *r, const struct krn_candidate *c);

/** krn_measure_results() - Return: as krn_measure(). measure_times.c */
int krn_measure_results(const struct krn_measurement *r, struct krn_times *ret);

/** krn_measure_on() - makes a frame's memory, with input values like a normalised image's, and
 * calls @measure, both on a thread of its own, on core @cpu unless < 0. Return: 0, -ENOMEM,
 * -EAGAIN, or what @measure sets r->error to. */
int krn_measure_on(struct krn_measurement *r, int cpu, const _Atomic bool *stop,
                   void (*measure)(struct krn_measurement *r));
void krn_measure_deinit(struct krn_measurement *r);
