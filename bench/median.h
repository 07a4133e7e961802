/* SPDX-License-Identifier: Apache-2.0 */
/** bench/median.h - doubles in order, and the one in the middle; for benches */
#pragma once

#include <stddef.h>
#include <stdlib.h>

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/** median() - sorts @v [@n]. Return: of an even number the mean of the two in the middle. */
static inline double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}
