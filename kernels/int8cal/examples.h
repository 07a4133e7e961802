/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/int8cal/examples.h - sets of examples, pictures or raw inputs, to calibrate and judge a
 * model
 *
 * An example is a file's name and bytes: a binary pixmap (P6 or P5, 8 bits), preprocessed as the
 * model's sidecar says; or, if the name ends in ".f32", the raw bytes of the model's one input.
 * Whether an example is valid depends on the model, so it is decoded on request. krn_examples_fit()
 * checks all of them and drops those that do not fit.
 */
#pragma once

#include "model/model.h"

#define KRN_EXAMPLES_MAX 16384u /* limit of a set */

struct krn_example {
    char *name;          /* owned */
    const uint8_t *data; /* [bytes]; owned or borrowed */
    size_t bytes;
    bool owned;
};

struct krn_examples {
    size_t count, room;
    struct krn_example *items; /* [count], owned */
    size_t left_out;           /* examples that do not fit or cannot be read */
    char note[MDL_ERROR_MAX];  /* "NAME: why" for the first of those, or "" */
};
#define KRN_EXAMPLES_NULL ((struct krn_examples){.count = 0})

void krn_examples_deinit(struct krn_examples *e);

/**
 * krn_examples_add() - appends an example
 * @data: if @owned, the set takes it and frees it, also on failure; else borrowed for the set's
 * life. Return: 0, -ENOMEM, -E2BIG past KRN_EXAMPLES_MAX.
 */
int krn_examples_add(struct krn_examples *e, const char *name, const void *data, size_t bytes,
                     bool owned);

/** krn_examples_leave_out() - counts @name as left out; the first one is noted with @why. */
void krn_examples_leave_out(struct krn_examples *e, const char *name, const char *why);

/**
 * krn_example_input() - converts example @i to the one input of @m
 * @ret: [m->inputs[0].bytes], row-major. Threads: any; allocates.
 * Return: 0; -EINVAL if it does not fit or contains NaN or infinity (@ret_error says why, without
 * the example's name); -ENOMEM.
 */
int krn_example_input(const struct krn_examples *e, size_t i, const struct mdl_model *m, void *ret,
                      char ret_error[MDL_ERROR_MAX]);

/**
 * krn_examples_fit() - drops examples that do not fit @m
 * Return: 0; -EINVAL if @m has more than one input; -ENOENT if no example is left; -ENOMEM
 * (@ret_error says why).
 */
int krn_examples_fit(struct krn_examples *e, const struct mdl_model *m,
                     char ret_error[MDL_ERROR_MAX]);
