/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/blas_buffers.h - OpenBLAS has a buffer for each of its calls that run at a time
 *
 * A call that finds no free buffer maps one of 128 MiB, mostly untouched, and tries for ever if
 * that fails. So buffers are made here, after asking for the memory, and a call waits for one of
 * them: with one buffer, every call ends. OpenBLAS keeps them until the process ends.
 */
#pragma once

#include "kernels/primitive.h"

/** krn_blas_prepare() - prepare() of every primitive that calls OpenBLAS: a buffer for each member.
 * Return: 0; -ENOMEM: there is not even one. */
int krn_blas_prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                     struct krn_prepared *p);
/** krn_blas_release() - nothing: the buffers are for all. */
void krn_blas_release(struct krn_prepared *p);

/** krn_blas_take() - before a call of OpenBLAS: waits until a buffer is free. After
 * krn_blas_prepare(). Threads: any. */
void krn_blas_take(void);
/** krn_blas_give() - after the call. */
void krn_blas_give(void);
