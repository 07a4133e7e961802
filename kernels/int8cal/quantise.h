/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/quantise.h - makes a calibration that is worth serving from an f32 model and
 * examples
 *
 * Half of the examples calibrate (kernels/int8cal/calibrate.h); on the other half, the quantised
 * model must give the f32 model's class. An operator stays f32 if the caller asks for it, or if
 * that measures faster. If classes agree too seldom, or agree by luck (krn_quantise_judge() in
 * kernels/int8cal/quantise_private.h expects less of other examples), other ways to find ranges are
 * tried first: by extremes, by extremes with channels equalised (model/quant/quant.h), by
 * divergence. Then the operators that cost most accuracy stay f32, as few as needed for the judging
 * half to agree. To find an operator's cost, it is quantised alone: the cost is the error of the
 * answers on calibrating examples, divided by the ns saved if those are known, or by the work.
 *
 * With a front, that answer is one proposal of many for which operators run on integers; the others
 * are f32, integers everywhere, and paths over both data types (kernels/select/mixed.h). Each is
 * measured and judged, also with f32 primitives that round more, and those of which no other is as
 * fast, as small, as right in its classes and as near in its answers are the front.
 */
#pragma once

#include <stdatomic.h>

#include "kernels/int8cal/calibrate.h"
#include "kernels/int8cal/examples.h"
#include "kernels/select/path.h"

struct krn_quantise_options {
    bool either; /* try both methods: the smaller error on calibrating examples wins, or the other
                  * one if the winner agrees too seldom */
    enum krn_calibrate_method method; /* if not either */
    bool symmetric;                   /* activations */
    const char *const *keep;          /* [keep_count], borrowed: operators that stay f32 */
    size_t keep_count;
    double agreement_min; /* 0..1, of top-1 classes */
    size_t group;         /* this many consecutive examples are variants of one; 0: 1 */
    const int *cpus;      /* [cpu_count], borrowed: one core of each kind; < 0: any */
    size_t cpu_count;
    uint64_t measure_ns;      /* per model and core, roughly; 0: speed is not measured */
    const _Atomic bool *stop; /* borrowed, may be NULL; true: stop early */
    size_t front_max;         /* make a front of this many proposals, about; 0: none */
    enum krn_path_algorithm front_search; /* as krn_mixed_front() */
};

enum krn_kept_why { KRN_KEPT_ASKED, KRN_KEPT_SLOWER, KRN_KEPT_ACCURACY, KRN_KEPT_FRONT };

/* A choice of data types and primitives: a point of the front. */
struct krn_precision {
    char **keep; /* [keep_count], owned: operators that stay f32 */
    size_t keep_count;
    bool inexact;            /* f32 operators may run on INEXACT primitives */
    size_t packed_bytes_max; /* for krn_choose(); 0: its fastest primitives */
    size_t integers;         /* operators on integers ... */
    size_t inexact_ops;      /* ... and on INEXACT primitives */
    double ns;               /* a frame on one core, mean of the kinds */
    size_t packed_bytes;     /* weights of its primitives, on the first kind */
    size_t arena_bytes;      /* a frame's memory */
    double agreement;        /* 0..1, as of struct krn_quantised */
    double expected;         /* 0..1: the share of other examples (quantise_private.h) */
    double error;            /* mean krn_answer_error() over the judging examples */
};

struct krn_quantised {
    struct mdl_calibration *calibration; /* owned; its keep lists all operators that stay f32 */
    enum krn_kept_why *why;              /* [calibration->keep_count], owned */
    enum krn_calibrate_method method;    /* the method that found the ranges */
    size_t calibrated, judged;           /* examples */
    bool held_out;                       /* false: one example, or one group, did both */
    size_t zeros;                        /* values that were 0 in every example */
    size_t products, integers;           /* operators that could be quantised; operators that are */
    double f32_work;                     /* 0..1: share of the products' multiplications in f32 */
    double agreement;                    /* 0..1 */
    double error_mean, error_most;       /* krn_answer_error() over the judging examples */
    double f32_ns, int8_ns; /* a frame on one core, mean of the kinds; 0: not measured */
    uint64_t took_ns;
    struct krn_precision *front; /* [front_count], owned: the fastest first */
    size_t front_count;
};
#define KRN_QUANTISED_NULL ((struct krn_quantised){.calibration = NULL})
void krn_quantised_deinit(struct krn_quantised *q);

/** krn_kept_why_name() - "asked", "slower", "accuracy", "front". */
const char *krn_kept_why_name(enum krn_kept_why why);

/**
 * krn_quantise() - @path: the f32 model, loaded with @load (whose calibration is ignored)
 * @e: examples that do not fit are dropped, and noted in it. With a front, what is useless is 0:
 * the front says what else there is.
 * Threads: any; blocks; needs memory for two models. Return: 0; KRN_QUANTISE_E_USELESS: it is no
 * faster, or nothing is left to quantise within the bound: @ret holds all but a calibration, and
 * @ret_error says which; -ENOENT: no example fits; -EINVAL: the model lacks an operator of @keep,
 * or cannot be quantised; -ECANCELED: stopped; else as mdl_load(), krn_net_new() and krn_measure().
 * @ret_error says why.
 */
enum { KRN_QUANTISE_E_USELESS = 1 };
int krn_quantise(const char *path, const struct mdl_load_options *load, struct krn_examples *e,
                 const struct krn_quantise_options *o, char ret_error[MDL_ERROR_MAX],
                 struct krn_quantised *ret);

/** krn_quantised_within() - Return: the fastest point of the front of which at most the share @lost
 * of the examples, judged and expected, gets another class than in f32; SIZE_MAX: none. */
size_t krn_quantised_within(const struct krn_quantised *q, double lost);
/** krn_quantised_take() - makes @q what point @point of its front says, which then is none
 * @q: without a calibration, if all is in f32. Return: 0, -ENOMEM. */
int krn_quantised_take(struct krn_quantised *q, size_t point);
