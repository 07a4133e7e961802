/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/examples.h - sets of examples: pictures and raw inputs that a model is judged by
 *
 * An example is a file's name and bytes: a binary pixmap (P6 or P5, 8 bits), prepared as the
 * model's sidecar says, or, where the name ends in ".f32", the bytes of the model's one input as
 * they are. What an example is good for depends on the model, so it is looked at when it is asked
 * for; krn_examples_fit() does so for all of them and lets those go that do not fit.
 */
#pragma once

#include "model/model.h"

#define KRN_EXAMPLES_MAX 16384u /* of a set */

struct krn_example {
    char *name;          /* owned */
    const uint8_t *data; /* [bytes]; owned if it is in memory of its own */
    size_t bytes;
    bool owned;
};

struct krn_examples {
    size_t count;
    struct krn_example *items; /* [count], owned */
    size_t left_out;           /* that did not fit, or could not be read */
    char note[MDL_ERROR_MAX];  /* "NAME: why" of the first of those, "" where there is none */
};
#define KRN_EXAMPLES_NULL ((struct krn_examples){.count = 0})

void krn_examples_deinit(struct krn_examples *e);

/**
 * krn_examples_add() - one more at the end
 * @data: taken if @owned, with the example or at failure; else borrowed until the set's end.
 * Return: 0, -ENOMEM, -E2BIG past KRN_EXAMPLES_MAX.
 */
int krn_examples_add(struct krn_examples *e, const char *name, const void *data, size_t bytes,
                     bool owned);

/** krn_examples_leave_out() - counts @name as left out; the first is noted with @why. */
void krn_examples_leave_out(struct krn_examples *e, const char *name, const char *why);

/**
 * krn_examples_folder() - every *.ppm, *.pgm and *.f32 in @path, in order of name
 * What else lies there is passed over; what cannot be read is left out. Threads: any; blocks.
 * Return: 0, -errno of the folder, -ENOENT where there is none of them (@ret_error says why).
 */
int krn_examples_folder(const char *path, char ret_error[MDL_ERROR_MAX], struct krn_examples *ret);

/**
 * krn_example_input() - example @i as the one input of @m
 * @ret: m->inputs[0].bytes, row-major as the model has it. Threads: any; allocates.
 * Return: 0; -EINVAL where it does not fit or holds NaN or infinity (@ret_error says why, without
 * the example's name); -ENOMEM.
 */
int krn_example_input(const struct krn_examples *e, size_t i, const struct mdl_model *m, void *ret,
                      char ret_error[MDL_ERROR_MAX]);

/**
 * krn_examples_fit() - lets those go that are no input of @m
 * Return: 0; -EINVAL where @m has more than one input; -ENOENT where nothing is left; -ENOMEM
 * (@ret_error says why).
 */
int krn_examples_fit(struct krn_examples *e, const struct mdl_model *m,
                     char ret_error[MDL_ERROR_MAX]);
