/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/border_encoding.h"

#include <float.h>
#include <math.h>

#include "base/base.h"
#include "ipc/f16.h"

const char *const brd_encoding_names[] = {
    [BRD_AS_IS] = "f32", [BRD_AS_F16] = "f16", [BRD_AS_I8] = "i8"};

bool brd_encoding_find(const char *name, enum brd_encoding *ret)
{
    for (size_t i = 0; i < base_array_count(brd_encoding_names); i++) {
        if (strcmp(brd_encoding_names[i], name) == 0) {
            *ret = (enum brd_encoding)i;
            return true;
        }
    }
    return false;
}

uint64_t brd_encoded_bytes(enum brd_encoding encoding, size_t count)
{
    return (uint64_t)count * (encoding == BRD_AS_I8 ? 1 : encoding == BRD_AS_F16 ? 2 : 4);
}

static float at(const uint8_t *floats, size_t i)
{
    float x;

    memcpy(&x, floats + 4 * i, 4);
    return x;
}

/* The range holds 0, so that 0 has a number of its own. */
static void range(const uint8_t *floats, size_t count, float *ret_scale, int32_t *ret_zero)
{
    float least = 0, greatest = 0;

    for (size_t i = 0; i < count; i++) {
        float x = at(floats, i);

        least = isfinite(x) && x < least ? x : least;
        greatest = isfinite(x) && x > greatest ? x : greatest;
    }
    *ret_scale = greatest / 255 - least / 255;
    if (!(*ret_scale >= FLT_MIN)) {
        *ret_scale = 1;
    }
    *ret_zero = -128 - (int32_t)lrintf(least / *ret_scale);
}

static void encode_i8(const uint8_t *from, size_t count, uint8_t *to, float scale, int32_t zero)
{
    float inverse = 1 / scale, low = (float)(-128 - zero), high = (float)(127 - zero);

    for (size_t i = 0; i < count; i++) {
        float q = at(from, i) * inverse;

        q = q < low ? low : q > high ? high : q;
        to[i] = (uint8_t)(int8_t)((isnan(q) ? 0 : (int32_t)lrintf(q)) + zero);
    }
}

static void decode_i8(const uint8_t *from, size_t count, float scale, int32_t zero, uint8_t *to)
{
    for (size_t i = 0; i < count; i++) {
        float x = scale * ((float)(int8_t)from[i] - (float)zero);

        memcpy(to + 4 * i, &x, 4);
    }
}

void brd_encode(enum brd_encoding encoding, const void *floats, size_t count, void *to,
                float *ret_scale, int32_t *ret_zero)
{
    *ret_scale = 1;
    *ret_zero = 0;
    if (encoding == BRD_AS_F16) {
        ipc_f16_encode(floats, count, to);
    } else if (encoding == BRD_AS_I8) {
        range(floats, count, ret_scale, ret_zero);
        encode_i8(floats, count, to, *ret_scale, *ret_zero);
    } else {
        memcpy(to, floats, 4 * count);
    }
}

void brd_decode(enum brd_encoding encoding, const void *from, size_t count, float scale,
                int32_t zero, void *floats)
{
    if (encoding == BRD_AS_F16) {
        ipc_f16_decode(from, count, floats);
    } else if (encoding == BRD_AS_I8) {
        decode_i8(from, count, scale, zero, floats);
    } else {
        memcpy(floats, from, 4 * count);
    }
}
