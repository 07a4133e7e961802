/* SPDX-License-Identifier: Apache-2.0 */
/**
 * picture_fit.h - which part of a picture goes to which part of a model's input
 *
 * The kernels resize by it, and who decodes outputs goes back by it, so both agree to the pixel.
 * Source pixels [src0, src0 + src) of an axis become [dst0, dst0 + dst) of the input. Nothing here
 * allocates or keeps state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum picture_fit { PICTURE_STRETCH, PICTURE_CROP, PICTURE_LETTERBOX };

struct picture_axis {
    uint32_t src0, src, dst0, dst;
};

static inline uint32_t picture_part(uint64_t a, uint64_t b, uint32_t most)
{
    uint64_t v = (a + b / 2) / b;

    return v < 1 ? 1 : v > most ? most : (uint32_t)v;
}

/** picture_fit() - @iw x @ih: of the picture; @w x @h: of the input; none of them 0. Crop fills the
 * input and cuts off the rest; letterbox shows all and pads. */
static inline void picture_fit(enum picture_fit how, uint32_t iw, uint32_t ih, uint32_t w,
                               uint32_t h, struct picture_axis *ret_x, struct picture_axis *ret_y)
{
    bool wide = (uint64_t)iw * h > (uint64_t)ih * w; /* wider than the input */

    *ret_x = (struct picture_axis){.src = iw, .dst = w};
    *ret_y = (struct picture_axis){.src = ih, .dst = h};
    if (how == PICTURE_CROP && wide) {
        ret_x->src = picture_part((uint64_t)ih * w, h, iw);
        ret_x->src0 = (iw - ret_x->src) / 2;
    } else if (how == PICTURE_CROP) {
        ret_y->src = picture_part((uint64_t)iw * h, w, ih);
        ret_y->src0 = (ih - ret_y->src) / 2;
    } else if (how == PICTURE_LETTERBOX && wide) {
        ret_y->dst = picture_part((uint64_t)ih * w, iw, h);
        ret_y->dst0 = (h - ret_y->dst) / 2;
    } else if (how == PICTURE_LETTERBOX) {
        ret_x->dst = picture_part((uint64_t)iw * h, ih, w);
        ret_x->dst0 = (w - ret_x->dst) / 2;
    }
}
