/* SPDX-License-Identifier: Apache-2.0 */
/** base/f16.h - IEEE binary16 as f32 */
#pragma once

#include <stdint.h>
#include <string.h>

/** f16_to_f32() - exact. Pure. */
static inline float f16_to_f32(uint16_t h)
{
#if defined(__aarch64__)
    __fp16 x;

    memcpy(&x, &h, sizeof(x));
    return (float)x;
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff, u;
    float x;

    if (exponent == 0) { /* subnormals are scaled by the FPU */
        x = (float)mantissa * 0x1p-24f;
        return sign ? -x : x;
    }
    u = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | mantissa << 13;
    memcpy(&x, &u, sizeof(x));
    return x;
#endif
}
