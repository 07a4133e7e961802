/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed planes and interleaved channels, by vectors. */
#include "kernels/common/layout.h"

#include "base/base.h"
#include "kernels/common/parallel.h"
#include "kernels/common/vec.h"

#define TILE 16u /* a cache line of each side */

#if KRN_VL >= 8
#define SIDE 8u
typedef int32_t row_of __attribute__((vector_size(32)));
typedef int32_t square_mem __attribute__((vector_size(32), aligned(1), may_alias));

KRN_INLINE void turn(row_of r[SIDE])
{
    row_of t[SIDE];

#pragma GCC unroll 4
    for (size_t i = 0; i < SIDE; i += 2) { /* pairs of rows, element by element */
        t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < SIDE; i += 4) { /* pairs of pairs */
        r[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 1] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[i + 2] = __builtin_shufflevector(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 3] = __builtin_shufflevector(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < SIDE / 2; i++) { /* halves */
        row_of low = r[i], high = r[i + 4];

        r[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
#else
#define SIDE 4u
typedef int32_t row_of __attribute__((vector_size(16)));
typedef int32_t square_mem __attribute__((vector_size(16), aligned(1), may_alias));

KRN_INLINE void turn(row_of r[SIDE])
{
    row_of a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
    row_of b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    row_of c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    row_of d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);

    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
#endif

KRN_INLINE void square(uint8_t *y, const uint8_t *x, ptrdiff_t y_step, ptrdiff_t x_step)
{
    row_of r[SIDE];

#pragma GCC unroll 8
    for (size_t i = 0; i < SIDE; i++) {
        r[i] = *(const square_mem *)(x + (ptrdiff_t)i * x_step);
    }
    turn(r);
#pragma GCC unroll 8
    for (size_t i = 0; i < SIDE; i++) {
        *(square_mem *)(y + (ptrdiff_t)i * y_step) = r[i];
    }
}

/* the rest that no square covers */
static void rest(const struct krn_transpose *t, struct krn_range rows, struct krn_range columns)
{
    for (size_t r = rows.begin; r < rows.end; r++) {
        uint8_t *y = t->y + ((ptrdiff_t)r * t->y_row + (ptrdiff_t)columns.begin) * 4;
        const uint8_t *x = t->x + ((ptrdiff_t)columns.begin * t->x_column + (ptrdiff_t)r) * 4;

        for (size_t c = columns.begin; c < columns.end; c++, y += 4, x += t->x_column * 4) {
            memcpy(y, x, 4);
        }
    }
}

static void tile(const struct krn_transpose *t, struct krn_range rows, struct krn_range columns)
{
    size_t r = rows.begin, squares = columns.begin;

    squares += (columns.end - columns.begin) / SIDE * SIDE;
    for (; r + SIDE <= rows.end; r += SIDE) {
        for (size_t c = columns.begin; c < squares; c += SIDE) {
            square(t->y + ((ptrdiff_t)r * t->y_row + (ptrdiff_t)c) * 4,
                   t->x + ((ptrdiff_t)c * t->x_column + (ptrdiff_t)r) * 4, t->y_row * 4,
                   t->x_column * 4);
        }
    }
    rest(t, (struct krn_range){rows.begin, r}, (struct krn_range){squares, columns.end});
    rest(t, (struct krn_range){r, rows.end}, columns);
}

/* two columns with adjacent pairs, as in a channel shuffle */
static void interleave(const struct krn_transpose *t)
{
#if KRN_VL >= 8
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#endif
    size_t r = 0;

    for (; r + SIDE <= t->rows; r += SIDE) {
        row_of a = *(const square_mem *)(t->x + r * 4);
        row_of b = *(const square_mem *)(t->x + ((ptrdiff_t)r + t->x_column) * 4);

        *(square_mem *)(t->y + r * 8) = __builtin_shufflevector(a, b, LOW);
        *(square_mem *)(t->y + (r * 2 + SIDE) * 4) = __builtin_shufflevector(a, b, HIGH);
    }
    rest(t, (struct krn_range){r, t->rows}, (struct krn_range){0, 2});
}

/* Three columns, as in an image. Element e of column c goes to place 3 e + c, so lane j of vector
 * v of the result is from column (SIDE v + j) % 3. The three vectors take different lanes of a
 * column: one permutation of each column brings every element to its lane. */
#if KRN_VL >= 8
#define FIRST 0, 3, 6, 1, 4, 7, 2, 5
#define SECOND 5, 0, 3, 6, 1, 4, 7, 2
#define THIRD 2, 5, 0, 3, 6, 1, 4, 7
#define LANES(X, v, c)                                                                             \
    X(v, c, 0), X(v, c, 1), X(v, c, 2), X(v, c, 3), X(v, c, 4), X(v, c, 5), X(v, c, 6), X(v, c, 7)
#else
#define FIRST 0, 3, 2, 1
#define SECOND 1, 0, 3, 2
#define THIRD 2, 1, 0, 3
#define LANES(X, v, c) X(v, c, 0), X(v, c, 1), X(v, c, 2), X(v, c, 3)
#endif
#define LANE_FROM(v, c, j) (SIDE * (v) + (j)) % 3 == (c) ? SIDE + (j) : (j)
#define OF_THREE(v)                                                                                \
    __builtin_shufflevector(__builtin_shufflevector(a, b, LANES(LANE_FROM, v, 1)), c,              \
                            LANES(LANE_FROM, v, 2))

static void interleave_three(const struct krn_transpose *t)
{
    size_t r = 0;

    for (; r + SIDE <= t->rows; r += SIDE) {
        const uint8_t *x = t->x + r * 4;
        row_of a = *(const square_mem *)x;
        row_of b = *(const square_mem *)(x + t->x_column * 4);
        row_of c = *(const square_mem *)(x + t->x_column * 8);
        uint8_t *y = t->y + r * 12;

        a = __builtin_shufflevector(a, a, FIRST);
        b = __builtin_shufflevector(b, b, SECOND);
        c = __builtin_shufflevector(c, c, THIRD);
        *(square_mem *)y = OF_THREE(0);
        *(square_mem *)(y + SIDE * 4) = OF_THREE(1);
        *(square_mem *)(y + SIDE * 8) = OF_THREE(2);
    }
    rest(t, (struct krn_range){r, t->rows}, (struct krn_range){0, 3});
}

void KRN_ISA_FN(krn_transpose_run)(const struct krn_transpose *t)
{
    if (t->columns == 3 && t->y_row == 3) {
        interleave_three(t);
        return;
    }
    if (t->columns == 2 && t->y_row == 2) {
        interleave(t);
        return;
    }
    for (size_t r = 0; r < t->rows; r += TILE) {
        for (size_t c = 0; c < t->columns; c += TILE) {
            tile(t, (struct krn_range){r, base_min(t->rows, r + TILE)},
                 (struct krn_range){c, base_min(t->columns, c + TILE)});
        }
    }
}
