/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/copy_any.h - copies between any strides
 */
#pragma once

#include "kernels/common/parallel.h"
#include "model/model.h"

/* The two sides: tensors of equal type and dims, and where their element 0 is, at any address. */
struct krn_copy {
    const struct mdl_tensor *y, *x;
    void *y_at;
    const void *x_at;
};

/**
 * krn_copy_run() - copies x to y, shared among the team
 * Return: false, and nothing is written, if a tensor is empty or y overlaps itself. Threads: the
 * team's leader; never allocates.
 */
bool krn_copy_run(const struct krn_copy *c, pthreadpool_t pool, size_t width);
