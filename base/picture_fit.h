/* SPDX-License-Identifier: Apache-2.0 */
/**
 * picture_fit.h - which part of a picture goes to which part of a model's input
 *
 * The kernels resize by it, and decoders map their results back by it, so both agree to the pixel.
 * Source pixels [src0, src0 + src) of an axis become [dst0, dst0 + dst) of the input. Nothing here
 * allocates or keeps state.
 */
#pragma once

#include <stdint.h>

enum picture_fit { PICTURE_STRETCH, PICTURE_CROP, PICTURE_LETTERBOX };
extern const char *const picture_fit_words[]; /* of each; NULL ends them */

struct picture_axis {
    uint32_t src0, src, dst0, dst;
};

/** picture_fit() - @iw x @ih: of the picture; @w x @h: of the input; none of them 0. Crop fills the
 * input and cuts off the rest; letterbox shows all and pads. */
void picture_fit(enum picture_fit how, uint32_t iw, uint32_t ih, uint32_t w, uint32_t h,
                 struct picture_axis *ret_x, struct picture_axis *ret_y);
