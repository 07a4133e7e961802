/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/transpose.h - a matrix of 4-byte elements turned over, in squares that fit registers
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* y[r][c] = x[c][r]; addresses may be odd, distances are in elements */
struct krn_transpose {
    uint8_t *y; /* [rows], dense along the columns */
    const uint8_t *x;
    ptrdiff_t y_row;    /* between rows of y */
    ptrdiff_t x_column; /* between columns; x is dense along the rows */
    size_t rows, columns;
};

/** krn_transpose_run() - with the widest vectors that the CPU has. Threads: any; never allocates.
 */
void krn_transpose_run(const struct krn_transpose *t);

/* the same for one instruction set: kernels/transpose_vec.c */
typedef void krn_transpose_fn(const struct krn_transpose *t);
krn_transpose_fn krn_transpose_run__vec, krn_transpose_run__avx2, krn_transpose_run__avx512;
