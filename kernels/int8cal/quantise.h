/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/quantise.h - from an f32 model and examples to a calibration that is worth serving by
 *
 * Half of the examples calibrate (kernels/calibrate.h), the other half judges: the quantised model
 * has to give the f32 model's class on them. Operators stay f32 where they are asked to, where that
 * makes the model faster as measured, and, if classes agree too seldom, where quantising costs most
 * accuracy: each operator is quantised alone, the error of the answers on calibrating examples, for
 * each ns saved where that is known, is its cost, and the most expensive ones stay f32, as few as
 * make the judging half agree. Before, other ways of finding ranges are tried: by extremes, the
 * same with channels equalised (model/quant.h), by divergence.
 */
#pragma once

#include <stdatomic.h>

#include "kernels/int8cal/calibrate.h"
#include "kernels/int8cal/examples.h"

struct krn_quantise_options {
    bool either; /* both methods are tried: the one of the smaller error on calibrating examples, or
                    another if that does not agree often enough */
    enum krn_calibrate_method method; /* if not either */
    bool symmetric;                   /* activations */
    const char *const *keep;          /* [keep_count], borrowed: operators that stay f32 */
    size_t keep_count;
    double agreement_min; /* 0..1, of top-1 classes */
    size_t group;         /* so many examples in a row are variants of one; 0: 1 */
    const int *cpus;      /* [cpu_count], borrowed: one core of each kind; < 0: any */
    size_t cpu_count;
    uint64_t measure_ns;      /* each model on each core, about; 0: speed is not looked at */
    const _Atomic bool *stop; /* borrowed, may be NULL: true: give up */
};

enum krn_kept_why { KRN_KEPT_ASKED, KRN_KEPT_SLOWER, KRN_KEPT_ACCURACY };

struct krn_quantised {
    struct mdl_calibration *calibration; /* owned; its keep holds the names of all that is kept */
    enum krn_kept_why *why;              /* [calibration->keep_count], owned */
    enum krn_calibrate_method method;    /* that found the ranges */
    size_t calibrated, judged;           /* examples */
    bool held_out;                       /* false: one example, or one group, did both */
    size_t zeros;                        /* values that were 0 in every example */
    size_t products, integers;           /* operators with an integer form; that run on integers */
    double agreement;                    /* 0..1 */
    double error_mean, error_most;       /* krn_answer_error() over the judging examples */
    double f32_ns, int8_ns; /* a frame on one core, mean of the kinds; 0: not measured */
    uint64_t took_ns;
};
#define KRN_QUANTISED_NULL ((struct krn_quantised){.calibration = NULL})
void krn_quantised_deinit(struct krn_quantised *q);

/** krn_kept_why_name() - "asked", "slower", "accuracy". */
const char *krn_kept_why_name(enum krn_kept_why why);

/**
 * krn_quantise() - @path: the f32 model, loaded by @load (its calibration is not looked at)
 * @e: examples that do not fit are let go and noted in it.
 * Threads: any; blocks; needs memory for two models. Return: 0; KRN_QUANTISE_E_USELESS: it is no
 * faster, or nothing is left to quantise within the bound: @ret holds all but a calibration, and
 * @ret_error says which; -ENOENT: no example fits; -EINVAL: an operator to keep is none of the
 * model's, or the model is unfit; -ECANCELED: stopped; else as mdl_load(), krn_net_new() and
 * krn_measure(). @ret_error says why.
 */
enum { KRN_QUANTISE_E_USELESS = 1 };
int krn_quantise(const char *path, const struct mdl_load_options *load, struct krn_examples *e,
                 const struct krn_quantise_options *o, char ret_error[MDL_ERROR_MAX],
                 struct krn_quantised *ret);
