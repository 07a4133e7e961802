/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as IEEE binary16 and back. */
#include "ipc/wire.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/f16.h"

#if defined(__aarch64__)
static uint16_t to_f16(float x)
{
    __fp16 h = (__fp16)x;
    uint16_t ret;

    memcpy(&ret, &h, sizeof(ret));
    return ret;
}
#else
static uint16_t to_f16(float x)
{
    uint32_t u, sign, mantissa;
    int exponent;

    memcpy(&u, &x, sizeof(u));
    sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u >= 0x7f800000) {
        return (uint16_t)(sign | (u > 0x7f800000 ? 0x7e00 : 0x7c00));
    }
    if (u >= 0x477ff000) { /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00);
    }
    if (u < 0x33000000) { /* less than half of the least subnormal; so is exactly half, to even */
        return (uint16_t)sign;
    }
    exponent = (int)(u >> 23) - 127;
    mantissa = (u & 0x7fffff) | 0x800000;
    if (exponent < -14) {
        uint32_t shift = (uint32_t)(-1 - exponent), half = 1u << (shift - 1);
        uint32_t rest = mantissa & ((1u << shift) - 1), q = mantissa >> shift;

        return (uint16_t)(sign | (q + (rest > half || (rest == half && (q & 1)))));
    }
    u = (u - 0x38000000) + 0xfff + (u >> 13 & 1);
    return (uint16_t)(sign | u >> 13);
}
#endif

/* Whole blocks of eight with the CPU's own conversion. Return: how many floats were converted. */
#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static size_t encode_blocks(const uint8_t *from, size_t count,
                                                                uint8_t *to)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m256 x = _mm256_loadu_ps((const float *)(const void *)(from + 4 * i));

        _mm_storeu_si128((__m128i *)(void *)(to + 2 * i),
                         _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    }
    return i;
}

__attribute__((target("avx,f16c"))) static size_t decode_blocks(const uint8_t *from, size_t count,
                                                                uint8_t *to)
{
    size_t i = 0;

    for (; i + 8 <= count; i += 8) {
        __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(from + 2 * i));

        _mm256_storeu_ps((float *)(void *)(to + 4 * i), _mm256_cvtph_ps(h));
    }
    return i;
}

static bool has_blocks(void)
{
    return __builtin_cpu_supports("avx2"); /* such a CPU has F16C, which clang cannot ask for */
}
#else
/* Each by itself; the compiler may know how to take several. */
#define has_blocks() false
#define encode_blocks(from, count, to) 0
#define decode_blocks(from, count, to) 0
#endif

void ipc_f16_encode(const void *floats, size_t count, void *halves)
{
    const uint8_t *from = floats;
    uint8_t *to = halves;

    for (size_t i = has_blocks() ? encode_blocks(from, count, to) : 0; i < count; i++) {
        uint16_t h;
        float x;

        memcpy(&x, from + 4 * i, 4);
        h = to_f16(x);
        memcpy(to + 2 * i, &h, 2);
    }
}

void ipc_f16_decode(const void *halves, size_t count, void *floats)
{
    const uint8_t *from = halves;
    uint8_t *to = floats;

    for (size_t i = has_blocks() ? decode_blocks(from, count, to) : 0; i < count; i++) {
        uint16_t h;
        float x;

        memcpy(&h, from + 2 * i, 2);
        x = f16_to_f32(h);
        memcpy(to + 4 * i, &x, 4);
    }
}
