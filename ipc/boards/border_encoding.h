/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/boards/border_encoding.h - f32 tensors of a border in fewer bytes on the wire
 *
 * BRD_AS_F16: IEEE binary16, rounded to nearest even; beyond its range infinity. BRD_AS_I8:
 * x = scale x (q - zero), the scale and zero of each tensor from its least and greatest value, so
 * that 0 is exact; NaN becomes 0, and infinities the ends. Both are for links of routes that were
 * judged with examples (docs/boards_inside.md).
 *
 * Pure functions; any thread; any alignment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers of the wire (apps/link/wire/messages.h). */
enum brd_encoding { BRD_AS_IS = 0, BRD_AS_F16 = 1, BRD_AS_I8 = 2 };

extern const char *const brd_encoding_names[];
/** brd_encoding_name() - Return: "f32", "f16" or "i8"; static. */
static inline const char *brd_encoding_name(enum brd_encoding encoding)
{
    return brd_encoding_names[encoding];
}
/** brd_encoding_find() - by its name. Return: true with @ret set. */
bool brd_encoding_find(const char *name, enum brd_encoding *ret);

/** brd_encoded_bytes() - of @count floats. */
uint64_t brd_encoded_bytes(enum brd_encoding encoding, size_t count);

/** brd_encode() - writes @count floats to @to, brd_encoded_bytes(). @ret_scale, @ret_zero: 1
 * and 0 but for BRD_AS_I8. */
void brd_encode(enum brd_encoding encoding, const void *floats, size_t count, void *to,
                float *ret_scale, int32_t *ret_zero);

/** brd_decode() - the reverse. @scale, @zero: as they came, whatever they are. */
void brd_decode(enum brd_encoding encoding, const void *from, size_t count, float scale,
                int32_t zero, void *floats);
