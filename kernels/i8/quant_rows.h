/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/i8/quant_rows.h - turns sums in memory into results, for products that a library computes
 *
 * A table holds the values that are the same for every pixel: [channel] biases, then multipliers,
 * in the lane order of the instruction set, padded to whole panels.
 */
#pragma once

#include "kernels/i8/quant_common.h"

#define KRN_QUANT_ROWS_SLACK 128u /* bytes behind the sums that may be read */

struct krn_quant_rows {
    struct krn_quant_epilogue epilogue;
    const uint8_t *table;
    size_t channels;
    uint8_t *y;     /* pixel 0, channel 0 */
    size_t y_pixel; /* elements of y's type */
};

/** krn_quant_table_bytes() - Return: bytes of a table, a multiple of 64 */
static inline size_t krn_quant_table_bytes(size_t channels)
{
    return (channels + 31) / 32 * 32 * (sizeof(int32_t) + sizeof(float));
}

/**
 * krn_quant_table() - writes the table of @channels, 64-byte aligned
 * @bias: added to a channel's sums, wrapping     @scale: multipliers
 */
typedef void krn_quant_table_fn(uint8_t *dst, const int32_t *bias, const float *scale,
                                size_t channels);
/**
 * krn_quant_rows() - computes some pixels
 * @sums: [@pixels][r->channels], for y's pixels from @first, followed by the slack
 */
typedef void krn_quant_rows_fn(const struct krn_quant_rows *r, const int32_t *sums, size_t first,
                               size_t pixels);
/** krn_quant_bytes() - copies @n bytes, each xor @flip */
typedef void krn_quant_bytes_fn(uint8_t *dst, const uint8_t *src, size_t n, uint8_t flip);

#define KRN_DECLARE_ROWS(isa)                                                                      \
    krn_quant_table_fn krn_quant_table__##isa;                                                     \
    krn_quant_rows_fn krn_quant_rows__##isa;                                                       \
    krn_quant_bytes_fn krn_quant_bytes__##isa;
KRN_DECLARE_ROWS(vec)
KRN_DECLARE_ROWS(avx2)
KRN_DECLARE_ROWS(avx512)
#undef KRN_DECLARE_ROWS
