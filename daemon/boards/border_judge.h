/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/border_judge.h - may the borders of a model go over links in fewer bytes
 *
 * Runs a model on examples as it is, and once more with all f32 tensors rounded at every border
 * between two units, as a link with that encoding would (ipc/boards/border_encoding.h). No route
 * has more borders than that, so the verdict holds for every route of the model. The model's input
 * is not rounded; an output that is finished early passes later borders, and is.
 */
#pragma once

#include <stdatomic.h>

#include "ipc/boards/border_encoding.h"
#include "kernels/int8cal/examples.h"
#include "model/model.h"

struct dmn_border_verdict {
    size_t judged;
    double agreement;  /* share of the examples that keep their class */
    double error_mean; /* of max |a - b| / max |a| of output 0; infinite: there are NaNs */
    double error_most;
};

/**
 * dmn_border_judge() - Threads: any; blocks for two frames an example on one core
 * @m: whole, one input. @examples: those that do not fit are left out. @stop: ends it early
 * @ret: complete only after 0
 * Return: 0; -ECANCELED; -EINVAL (several inputs, a segment), -ENOENT (no example fits),
 * -EOPNOTSUPP (krn_net_new()) or -ENOMEM, with @ret_error.
 */
int dmn_border_judge(const struct mdl_model *m, struct krn_examples *examples,
                     enum brd_encoding encoding, const _Atomic bool *stop,
                     char ret_error[MDL_ERROR_MAX], struct dmn_border_verdict *ret);
