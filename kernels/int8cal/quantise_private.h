/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/quantise_private.h - shared by quantise*.c
 *
 * Lowest first: quantise_judge.c judges a calibration, quantise_times.c measures, quantise_keep.c
 * chooses what stays f32 for speed and for accuracy, quantise_front.c makes a front, quantise.c
 * shows examples, finds ranges and decides.
 */
#pragma once

#include "kernels/int8cal/quantise.h"
#include "kernels/int8cal/runner.h"
#include "kernels/select/measure.h"

/* calibrating examples on which an operator's cost is measured */
#define KRN_RANKED_EXAMPLES 16u

/* Some examples and the f32 model's answers to them. */
struct krn_answers {
    size_t count;
    size_t *example; /* [count], owned: indices */
    uint8_t **of;    /* [count], owned: output 0 */
};

struct krn_judgement {
    size_t same;      /* examples of the same class */
    double sum, most; /* of krn_answer_error() */
    double square;    /* sum of its squares */
    double expected;  /* 0..1: the share of the same class, if errors fell on examples at random */
};

#define KRN_QUANTISE_WAYS 3u

/* One way to find ranges. */
struct krn_quantise_way {
    struct mdl_calibration *calibration; /* owned; NULL: not tried, or in use */
    enum krn_calibrate_method method;
};

struct krn_quantise {
    const char *path;
    struct mdl_load_options load;
    struct krn_examples *e;
    const struct krn_quantise_options *o;
    char *error;         /* MDL_ERROR_MAX */
    struct mdl_model *m; /* f32, owned, as is what follows */
    struct krn_runner real;
    void *input;
    struct krn_calibrate *ranges; /* values seen on calibrating examples */
    double *saved; /* [m->op_count]: ns saved by integers; not measured: krn_quantise_work() */
    struct krn_answers learned, judged; /* of learned, the first KRN_RANKED_EXAMPLES have answers */
    struct krn_quantise_way ways[KRN_QUANTISE_WAYS]; /* ways with a larger error */
    struct {
        const char *what;        /* static */
        size_t done, count;      /* passes over the examples */
    } pass;                      /* written by krn_quantise_pass() */
    const struct krn_choice *by; /* primitives of what is judged; NULL: by static preference */
    struct krn_quantised q;
};

/* An operator that can run on integers. */
struct krn_quantise_candidate {
    const char *name; /* of the f32 model's operator */
    size_t op;        /* its index there */
    double saved;     /* ns, by integers */
    double work;      /* krn_quantise_work() */
    double square;    /* loss of accuracy: squared error of the answers if it alone is quantised */
    double cost;      /* that per ns saved, or per work */
};

/* ---- quantise_judge.c ---- */

/** krn_quantise_stopped() - Return: whether the caller stopped it; if so, sets the error text. */
bool krn_quantise_stopped(const struct krn_quantise *j);
/**
 * krn_quantise_judge() - compares the model under the present calibration with @a
 *
 * Few examples agree or disagree by luck, above all where one calibration of many is picked for
 * it. So agreement is also estimated from all pairs of one example's lead and another's error:
 *
 *   expected = sum over i, k of [lead f32(i) + lead int8(k) - lead f32(k) > 0] / count^2
 *
 * with leads of krn_answer_lead(); the convolution of both empirical distributions. Without leads
 * it is the share of the same class. Return: 0, negative.
 */
int krn_quantise_judge(struct krn_quantise *j, const struct krn_answers *a,
                       struct krn_judgement *ret);
/** krn_quantise_pass() - says for mdl_progress() what the next krn_quantise_judge() is part of:
 * pass @done of @count. @what: static; another one for each sequence of passes. */
void krn_quantise_pass(struct krn_quantise *j, const char *what, size_t done, size_t count);
/** krn_quantise_add_keep() - one more operator stays f32. Return: 0, -ENOMEM. */
int krn_quantise_add_keep(struct krn_quantise *j, const char *name, enum krn_kept_why why);
/** krn_quantise_cut_keep() - shortens the list to the first @count. */
void krn_quantise_cut_keep(struct krn_quantise *j, size_t count);
/** krn_quantise_work() - Return: an op's multiply-adds, or the values that it reads if these are
 * more; at least 1. */
double krn_quantise_work(const struct mdl_model *m, const struct mdl_op *op);
/** krn_quantise_take() - swaps way @i, if it exists, with the calibration; the list of f32
 * operators stays. */
bool krn_quantise_take(struct krn_quantise *j, size_t i);
/** krn_quantise_ranked() - Return: the calibrating examples that have answers; the arrays belong to
 * j->learned. */
struct krn_answers krn_quantise_ranked(const struct krn_quantise *j);
/** krn_quantise_no_memory() - sets the error text. Return: -ENOMEM. */
int krn_quantise_no_memory(const struct krn_quantise *j);

/* ---- quantise_times.c ---- */

/** krn_quantise_measure() - krn_measure() on a kind of cores. @by: cpu and stop are set. Return: as
 * that; negative with the error text, if it was not stopped. */
int krn_quantise_measure(const struct krn_quantise *j, const struct mdl_model *m, size_t kind,
                         struct krn_measure_options by, struct krn_times *ret);

/* What the operators take in f32 and on integers. */
struct krn_dtype_times {
    struct mdl_model *whole;        /* on integers as far as the calibration goes; owned */
    size_t kinds;                   /* of cores */
    struct krn_times *real, *bytes; /* [kinds], owned: of krn_quantise.m, and of whole */
};
#define KRN_DTYPE_TIMES_NULL ((struct krn_dtype_times){0})

/** krn_dtype_times_init() - measures both under the present calibration. @budget_ns: for each model
 * and kind. @ret: krn_dtype_times_deinit(), also after a failure. Return: 0, negative. */
int krn_dtype_times_init(struct krn_quantise *j, uint64_t budget_ns, struct krn_dtype_times *ret);
void krn_dtype_times_deinit(struct krn_dtype_times *t);
/** krn_dtype_times_of() - times of @m, which mixes both. Only ops that neither model has are
 * measured: conversions. @ret: the caller's, krn_times_deinit(), also after a failure. Return: 0,
 * negative. */
int krn_dtype_times_of(const struct krn_quantise *j, const struct krn_dtype_times *t, size_t kind,
                       const struct mdl_model *m, struct krn_measure_options by,
                       struct krn_times *ret);

/* ---- quantise_keep.c ---- */

/** krn_quantise_find_op() - Return: the index of the op of @m called @name; MDL_NONE: none. */
size_t krn_quantise_find_op(const struct mdl_model *m, const char *name);
/** krn_quantise_speed() - measures the model in f32 and on integers; ops that are slower on
 * integers stay f32. */
int krn_quantise_speed(struct krn_quantise *j);
/** krn_quantise_measure_again() - measures again, since ops kept f32 for accuracy change the
 * time. */
int krn_quantise_measure_again(struct krn_quantise *j);

/** krn_quantise_candidates() - finds the operators that can run on integers beside the first @kept
 * that stay f32. @ret: [j->m->op_count]. Return: 0, negative. */
int krn_quantise_candidates(struct krn_quantise *j, size_t kept, struct krn_quantise_candidate *ret,
                            size_t *ret_count);
/** krn_quantise_costs() - sets `square` of all candidates, each quantised alone. @what: for
 * krn_quantise_pass(). Return: 0, negative. */
int krn_quantise_costs(struct krn_quantise *j, const char *what, struct krn_quantise_candidate *all,
                       size_t count);

/** krn_quantise_bound() - keeps the ops that cost most in f32, as few as the judging examples need
 * to agree
 * @judgement: in: without these ops; out: with them. Return: 0; KRN_QUANTISE_E_USELESS;
 * negative. */
int krn_quantise_bound(struct krn_quantise *j, struct krn_judgement *judgement);

/* ---- quantise_front.c ---- */

/** krn_quantise_front() - adds the front to j->q. Return: 0, negative. */
int krn_quantise_front(struct krn_quantise *j);
void krn_precisions_free(struct krn_precision *of, size_t count);
