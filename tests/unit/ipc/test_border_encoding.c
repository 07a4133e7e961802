/* SPDX-License-Identifier: Apache-2.0 */
/* Floats in fewer bytes: every half, what lies between them, ranges, what is no number. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ipc/boards/border_encoding.h"
#include "tests/harness.h"

#define MANY 1003 /* whole blocks and a rest */

static void must(bool x)
{
    if (!x) {
        fprintf(stderr, "blocks and the rest differ, or scale and zero are out of range\n");
        abort();
    }
}

static uint16_t f16_of(float x)
{
    float many[MANY], scale;
    uint16_t h[MANY];
    int32_t zero;

    for (size_t i = 0; i < MANY; i++) {
        many[i] = x;
    }
    brd_encode(BRD_AS_F16, many, MANY, h, &scale, &zero);
    for (size_t i = 0; i < MANY; i++) {
        must(h[i] == h[0]);
    }
    return h[0];
}

static float f16_value(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double x = exponent == 31  ? (h & 0x3ff ? NAN : INFINITY)
               : exponent == 0 ? ldexp(h & 0x3ff, -24)
                               : ldexp((h & 0x3ff) | 0x400, exponent - 25);

    return (float)(h & 0x8000 ? -x : x);
}

/* Each half, and the points between it and the next one: nearer to one, and in the middle. */
TEST(every_half)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float x = f16_value((uint16_t)h), next = h == 0x7bff ? 65536 : f16_value((uint16_t)(h + 1));
        float middle = (x + next) / 2;
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);

        T_EQ(f16_of(x), h);
        T_EQ(f16_of(-x), h | 0x8000);
        T_EQ(f16_of(middle), even);
        T_EQ(f16_of(nextafterf(middle, 0)), h);
        T_EQ(f16_of(nextafterf(middle, INFINITY)), h + 1);
    }
    T_EQ(f16_of(INFINITY), 0x7c00);
    T_EQ(f16_of(-1e30f), 0xfc00);
    T_EQ(f16_of(NAN) & 0x7c00, 0x7c00);
    T_NE(f16_of(NAN) & 0x3ff, 0);
    T_EQ(f16_of(FLT_TRUE_MIN), 0);
}

TEST(halves_come_back)
{
    static uint16_t h[0x10000];
    static float x[0x10000];

    for (uint32_t i = 0; i < 0x10000; i++) {
        h[i] = (uint16_t)i;
    }
    brd_decode(BRD_AS_F16, h, 0x10000, 0, 0, x);
    for (uint32_t i = 0; i < 0x10000; i++) {
        float want = f16_value((uint16_t)i);

        T_TRUE(isnan(want) ? isnan(x[i]) : memcmp(&x[i], &want, 4) == 0);
    }
    brd_decode(BRD_AS_F16, h + 1, 3, 0, 0, (uint8_t *)x + 1); /* at any address */
}

static void there_and_back(const float *x, size_t count, float *ret)
{
    int8_t q[MANY + 1];
    int32_t zero;
    float scale;

    brd_encode(BRD_AS_I8, x, count, q + 1, &scale, &zero);
    must(isfinite(scale) && scale > 0 && zero >= -128 && zero <= 127);
    brd_decode(BRD_AS_I8, q + 1, count, scale, zero, ret);
}

TEST(eight_bits)
{
    uint64_t seed = 5;
    float x[MANY], y[MANY];

    for (int round = 0; round < t_times(2000); round++) {
        float low = 0, high = 0, size = ldexpf(1, (int)(base_splitmix64(&seed) % 200) - 100);
        float shift = round % 3 ? (float)(round % 3 - 1) : 0;

        for (size_t i = 0; i < MANY; i++) {
            x[i] = i % 7 ? size * (shift + (float)(base_splitmix64(&seed) >> 40) * 0x1p-24f) : 0;
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
        }
        there_and_back(x, MANY, y);
        for (size_t i = 0; i < MANY; i++) {
            T_TRUE(fabsf(x[i] - y[i]) <= (high - low) / 255 * 1.01f);
            T_TRUE(x[i] != 0 || y[i] == 0);
        }
    }
}

TEST(eight_bits_of_odd_values)
{
    const float x[] = {NAN, INFINITY, -INFINITY, 1, -1, 0, FLT_MAX, -FLT_MAX, FLT_TRUE_MIN};
    float y[base_array_count(x)];

    there_and_back(x, 6, y);
    T_EQ(y[0], 0);
    T_NEAR(y[1], 1, 0.01);
    T_NEAR(y[2], -1, 0.01);
    T_EQ(y[5], 0);
    there_and_back(x, base_array_count(x), y);
    T_NEAR(y[6] / FLT_MAX, 1, 0.01);
    there_and_back(x + 5, 1, y);
    T_EQ(y[0], 0);
    there_and_back(x + 8, 1, y);
    T_EQ(y[0], 0);
}

TEST(sizes)
{
    T_EQ(brd_encoded_bytes(BRD_AS_IS, 10), 40);
    T_EQ(brd_encoded_bytes(BRD_AS_F16, 10), 20);
    T_EQ(brd_encoded_bytes(BRD_AS_I8, 10), 10);
}

TEST_MAIN()
