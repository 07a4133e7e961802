/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/transpose.h - transposes a matrix of 4-byte elements, in squares that fit the
 * registers
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/common/cpu.h"

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
