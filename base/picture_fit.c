/* SPDX-License-Identifier: Apache-2.0 */
#include "base/picture_fit.h"

#include <stdbool.h>
#include <stddef.h>

const char *const picture_fit_words[] = {[PICTURE_STRETCH] = "stretch",
                                         [PICTURE_CROP] = "crop",
                                         [PICTURE_LETTERBOX] = "letterbox",
                                         NULL};

static uint32_t picture_part(uint64_t a, uint64_t b, uint32_t most)
{
    uint64_t v = (a + b / 2) / b;

    return v < 1 ? 1 : v > most ? most : (uint32_t)v;
}

void picture_fit(enum picture_fit how, uint32_t iw, uint32_t ih, uint32_t w, uint32_t h,
                 struct picture_axis *ret_x, struct picture_axis *ret_y)
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
