/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/copy_any.h - copies between any strides
 */
#pragma once

#include "kernels/kernels.h"

/* The two sides: tensors of equal type and dims, and where their element 0 is, at any address. */
struct krn_copy {
    const struct mdl_tensor *y, *x;
    void *y_at;
    const void *x_at;
};

/** krn_copy_is_plain() - does @op change nothing on the way: no element function and the like. */
bool krn_copy_is_plain(const struct mdl_op *op);
/**
 * krn_copy_run() - y = x, shared among the team
 * Return: false for an empty tensor, or a y that overlaps itself: then nothing is written. Threads:
 * the team's leader; never allocates.
 */
bool krn_copy_run(const struct krn_copy *c, pthreadpool_t pool, size_t width);
