/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/boards/border_encoding.h"

#include <float.h>
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base.h"

static const char *const names[] = {[BRD_AS_IS] = "f32", [BRD_AS_F16] = "f16", [BRD_AS_I8] = "i8"};

const char *brd_encoding_name(enum brd_encoding encoding)
{
    return names[encoding];
}

bool brd_encoding_find(const char *name, enum brd_encoding *ret)
{
    for (size_t i = 0; i < base_array_count(names); i++) {
        if (strcmp(names[i], name) == 0) {
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

#if defined(__aarch64__)
static uint16_t to_f16(float x)
{
    __fp16 h = (__fp16)x;
    uint16_t ret;

    memcpy(&ret, &h, sizeof(ret));
    return ret;
}

static float from_f16(uint16_t h)
{
    __fp16 x;

    memcpy(&x, &h, sizeof(x));
    return (float)x;
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

static float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff, u;
    float x;

    if (exponent == 0) {
        x = (float)mantissa * 0x1p-24f;
        return sign ? -x : x;
    }
    u = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | mantissa << 13;
    memcpy(&x, &u, sizeof(x));
    return x;
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
static size_t encode_blocks(const uint8_t *from, size_t count, uint8_t *to)
{
    (void)from;
    (void)count;
    (void)to;
    return 0;
}
#define decode_blocks encode_blocks

static bool has_blocks(void)
{
    return false;
}
#endif

static void encode_f16(const uint8_t *from, size_t count, uint8_t *to)
{
    for (size_t i = has_blocks() ? encode_blocks(from, count, to) : 0; i < count; i++) {
        uint16_t h;
        float x;

        memcpy(&x, from + 4 * i, 4);
        h = to_f16(x);
        memcpy(to + 2 * i, &h, 2);
    }
}

static void decode_f16(const uint8_t *from, size_t count, uint8_t *to)
{
    for (size_t i = has_blocks() ? decode_blocks(from, count, to) : 0; i < count; i++) {
        uint16_t h;
        float x;

        memcpy(&h, from + 2 * i, 2);
        x = from_f16(h);
        memcpy(to + 4 * i, &x, 4);
    }
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
        encode_f16(floats, count, to);
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
        decode_f16(from, count, floats);
    } else if (encoding == BRD_AS_I8) {
        decode_i8(from, count, scale, zero, floats);
    } else {
        memcpy(floats, from, 4 * count);
    }
}
