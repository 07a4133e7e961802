/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/quantise_private.h - what quantise.c and quantise_keep.c share
 */
#pragma once

#include "kernels/int8cal/quantise.h"
#include "kernels/int8cal/runner.h"

/* of those that calibrate: an operator's cost is measured on them */
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
};

#define KRN_QUANTISE_WAYS 3u

/* One way of finding ranges. */
struct krn_quantise_way {
    struct mdl_calibration
        *calibration; /* owned; NULL: not tried, or it is the one that is taken */
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
    struct krn_calibrate *ranges; /* what calibrating examples have shown */
    double *saved;                /* [m->op_count]: ns that integers save; all 1: not measured */
    struct krn_answers learned, judged; /* of learned, the first KRN_RANKED_EXAMPLES have answers */
    struct krn_quantise_way ways[KRN_QUANTISE_WAYS]; /* those that erred more */
    struct krn_quantised q;
};

/** krn_quantise_stopped() - was it given up? Then the error says so. */
bool krn_quantise_stopped(const struct krn_quantise *j);
/** krn_quantise_judge() - the model by the calibration as it is, on @a. Return: 0, negative. */
int krn_quantise_judge(struct krn_quantise *j, const struct krn_answers *a,
                       struct krn_judgement *ret);
/** krn_quantise_add_keep() - one more operator stays f32. Return: 0, -ENOMEM. */
int krn_quantise_add_keep(struct krn_quantise *j, const char *name, enum krn_kept_why why);
/** krn_quantise_cut_keep() - the first @count stay in the list. */
void krn_quantise_cut_keep(struct krn_quantise *j, size_t count);
/** krn_quantise_take() - way @i, if there is one, changes places with the calibration; operators
 * that stay f32 stay so. */
bool krn_quantise_take(struct krn_quantise *j, size_t i);
/** krn_quantise_bound() - keeps f32 what costs most, as little as makes the judging examples agree
 * @judgement: without, then with that. Return: 0; KRN_QUANTISE_E_USELESS; negative. */
int krn_quantise_bound(struct krn_quantise *j, struct krn_judgement *judgement);
