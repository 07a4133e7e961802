/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/layout.h - changes of layout: of images to dense NCHW, [N][C][H][W], and back, and
 * transposed matrices of 4-byte elements
 *
 * A tensor in a frame's memory has the model's layout whenever other code may read it. Primitives
 * of the NCHW layout (krn_primitive.nchw_in, nchw_out) read input 0 and write output 0 as NCHW.
 * Their caller converts before and after. Between two of them, it leaves a value that nothing else
 * reads in NCHW (krn_nchw_may_stay() in kernels/choice.h).
 */
#pragma once

#include "kernels/common/cpu.h"
#include "kernels/common/parallel.h"
#include "model/model.h"

/** krn_nchw_bytes() - Return: bytes of tensor @t in NCHW, a multiple of 64. */
size_t krn_nchw_bytes(const struct mdl_model *m, size_t t);

/**
 * krn_nchw_to() - converts tensor @t from the model's layout to NCHW
 * krn_nchw_from() - and back
 * @value: element 0 of the tensor; @nchw: krn_nchw_bytes(), no overlap. Shared among the team.
 * Threads: the team's leader; never allocates.
 */
void krn_nchw_to(const struct mdl_model *m, size_t t, const void *value, void *nchw,
                 const struct krn_exec *exec);
void krn_nchw_from(const struct mdl_model *m, size_t t, const void *nchw, void *value,
                   const struct krn_exec *exec);

/* ---- transposed in squares that fit the registers ---- */

/* y[r][c] = x[c][r]; addresses need no alignment; strides are in elements */
struct krn_transpose {
    uint8_t *y; /* [rows], dense along the columns */
    const uint8_t *x;
    ptrdiff_t y_row;    /* between rows of y */
    ptrdiff_t x_column; /* between columns; x is dense along the rows */
    size_t rows, columns;
};

/* the same for one instruction set: kernels/common/transpose_vec.c */
typedef void krn_transpose_fn(const struct krn_transpose *t);
krn_transpose_fn krn_transpose_run__vec, krn_transpose_run__avx2, krn_transpose_run__avx512;

/** krn_transpose_run() - transposes with the CPU's widest vectors. Threads: any; never allocates.
 */
static inline void krn_transpose_run(const struct krn_transpose *t)
{
    KRN_OF_CPU(krn_transpose_run)(t);
}
