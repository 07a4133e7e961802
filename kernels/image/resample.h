/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image/resample.h - resizes rows of an image, and interpolates between two rows; for
 * preprocess.c only
 *
 * Along x, bilinear: a + t (b - a), two roundings to f32. Area: the exact integer sum of bytes and
 * weights, divided by the sum of the weights in double, then rounded to f32. Along y, on those
 * rows, in f32. No step depends on the instruction set.
 */
#pragma once

#include "kernels/image/image.h"

/* One output position along an axis. Bilinear: p[first] + t (p[last] - p[first]). Area: weights
 * w_first, dst, ..., dst, w_last over first..last in units of 1/dst source pixel; their sum is the
 * axis' src. */
struct krn_tap {
    uint32_t first, last, w_first, w_last;
    float t;
};

/* A run of @src source pixels from @src0 becomes @dst pixels from @dst0. */
struct krn_axis {
    uint32_t src0, src, dst0, dst;
    bool area;
};

/** krn_tap_of() - Return: the tap of output @i, whose centre is (i + 1/2) src / dst - 1/2, kept as
 * a fraction. */
struct krn_tap krn_tap_of(const struct krn_axis *a, uint32_t i);

/**
 * krn_resample_row() - resizes row @y of @img along x
 * @k: 1 (luma) or 3 (R, G, B), interleaved in @out     @taps: [axis->dst]
 * @out: [axis->dst * @k + 1]; the last float is overwritten, too
 */
void krn_resample_row(const struct krn_image *img, size_t k, const struct krn_axis *axis,
                      const struct krn_tap *taps, uint32_t y, float *out);

/** krn_resample_between() - out = a + t (b - a) for @n values. */
void krn_resample_between(const float *a, const float *b, float t, size_t n, float *out);
/** krn_resample_add() - out += w a. krn_resample_divide() - out /= by. */
void krn_resample_add(const float *a, float w, size_t n, float *out);
void krn_resample_divide(float by, size_t n, float *out);
