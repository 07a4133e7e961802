/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/sample.h - which elements of an image operators read between its pixels, and how
 * they weigh them: GRID_SAMPLE, ROI_ALIGN and DEFORM_COLUMNS
 *
 * Positions come with the frame. Whatever they are, NaN and infinities included, the elements lie
 * in the image. The references and the fast primitives share this, so that they read alike. All
 * functions are pure; any thread.
 */
#pragma once

#include "kernels/primitive.h"

#define KRN_SAMPLE_TAPS_MAX 64u /* cubic in three dims */

/* One element that is read: its offset in elements from channel 0 of its image, and its weight,
 * never 0. */
struct krn_sample_tap {
    ptrdiff_t at;
    double weight;
};

/** krn_grid_taps() - the taps of the position at spatial index @index of image @n of GRID_SAMPLE.
 * Return: their number, at most KRN_SAMPLE_TAPS_MAX; 0 where only zeros are read */
size_t krn_grid_taps(const struct krn_call *c, size_t n, const size_t *index,
                     struct krn_sample_tap *ret);

/** krn_deform_taps() - the taps of element @index (row, column) of image @n of DEFORM_COLUMNS, for
 * tap @k of offset group @group; the mask is in the weights. Return: their number, at most 4 */
size_t krn_deform_taps(const struct krn_call *c, size_t n, size_t group, size_t k,
                       const size_t *index, struct krn_sample_tap *ret);

/* A region of ROI_ALIGN. */
struct krn_roi {
    bool valid; /* its image exists */
    size_t image;
    float start[2]; /* row, column */
    float bin[2];   /* size of a bin */
    size_t grid[2]; /* samples of a bin */
};

/** krn_roi_of() - Return: region @r. A bin has at most as many samples along a dim as the image has
 * pixels: regions that are far too large take no longer than the whole image. */
struct krn_roi krn_roi_of(const struct krn_call *c, size_t r);

/** krn_roi_taps() - the taps of sample @sample (row, column) of bin @bin of a valid region.
 * Return: their number, at most 4 */
size_t krn_roi_taps(const struct krn_call *c, const struct krn_roi *roi, const size_t *bin,
                    const size_t *sample, struct krn_sample_tap *ret);
