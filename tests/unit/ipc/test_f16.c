/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as halves: every half, what lies between them, what is no number. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ipc/wire.h"
#include "tests/harness.h"

#define MANY 1003 /* whole blocks and a rest */

static uint16_t f16_of(float x)
{
    float many[MANY];
    uint16_t h[MANY];

    for (size_t i = 0; i < MANY; i++) {
        many[i] = x;
    }
    ipc_f16_encode(many, MANY, h);
    for (size_t i = 0; i < MANY; i++) {
        if (h[i] != h[0]) {
            fprintf(stderr, "blocks and the rest differ\n");
            abort();
        }
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
    ipc_f16_decode(h, 0x10000, x);
    for (uint32_t i = 0; i < 0x10000; i++) {
        float want = f16_value((uint16_t)i);

        T_TRUE(isnan(want) ? isnan(x[i]) : memcmp(&x[i], &want, 4) == 0);
    }
    ipc_f16_decode(h + 1, 3, (uint8_t *)x + 1); /* at any address */
}

TEST_MAIN()
