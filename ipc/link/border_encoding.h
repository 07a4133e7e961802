/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/border_encoding.h - f32 tensors of a border in fewer bytes on the wire
 *
 * LNK_AS_F16: IEEE binary16, rounded to nearest even; beyond its range infinity. LNK_AS_I8:
 * x = scale x (q - zero), the scale and zero of each tensor from its least and greatest value, so
 * that 0 is exact; NaN becomes 0, and infinities the ends. Both are for links of routes that were
 * judged with examples (docs/boards.md).
 *
 * Pure functions; any thread; any alignment.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ipc/link/link_wire.h"

/** lnk_encoded_bytes() - of @count floats. */
uint64_t lnk_encoded_bytes(enum lnk_encoding encoding, size_t count);

/** lnk_encode() - writes @count floats to @to, lnk_encoded_bytes(). @ret_scale, @ret_zero: for
 * struct lnk_tensor; 1 and 0 but for LNK_AS_I8. */
void lnk_encode(enum lnk_encoding encoding, const void *floats, size_t count, void *to,
                float *ret_scale, int32_t *ret_zero);

/** lnk_decode() - the reverse. @scale, @zero: as they came, whatever they are. */
void lnk_decode(enum lnk_encoding encoding, const void *from, size_t count, float scale,
                int32_t zero, void *floats);
