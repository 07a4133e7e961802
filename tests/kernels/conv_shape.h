/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/conv_shape.h - shapes of convolutions for tests of primitives: scaled-down real
 * ones, and random ones around every edge
 */
#pragma once

#include <stdio.h>

#include "model/model.h"
#include "tests/harness.h"
#include "tests/kernels/real_layers.h"

/* limit of a case's multiply-accumulates, since the reference is slow */
#define MACS_MAX (1.5e6 / t_share())

struct conv_shape {
    size_t n, c, h, w, o, kh, kw, sh, sw, dh, dw, top, left, bottom, right, groups;
    size_t x_pixel, y_pixel; /* 0: dense */
    size_t x_gap;            /* elements between two rows of x that are no pixels */
};

/* @k x @k of stride 1 on one image, with @pad on all sides */
static inline struct conv_shape conv_square(size_t c, size_t h, size_t w, size_t o, size_t k,
                                            size_t pad)
{
    return (struct conv_shape){.n = 1,
                               .c = c,
                               .h = h,
                               .w = w,
                               .o = o,
                               .kh = k,
                               .kw = k,
                               .sh = 1,
                               .sw = 1,
                               .dh = 1,
                               .dw = 1,
                               .top = pad,
                               .left = pad,
                               .bottom = pad,
                               .right = pad,
                               .groups = 1};
}

/* @kh x @kw, odd, of stride 1 on one image; y has the size of x */
static inline struct conv_shape conv_same(size_t c, size_t h, size_t w, size_t o, size_t kh,
                                          size_t kw)
{
    struct conv_shape s = conv_square(c, h, w, o, kh, kh / 2);

    s.kw = kw;
    s.left = s.right = kw / 2;
    return s;
}

/* Scales height and width down to MACS_MAX; keeps channels and window. */
static inline struct conv_shape conv_of_layer(const struct layer_conv *l)
{
    struct conv_shape s = conv_square(l->c, l->h, l->w, l->o, l->k, l->pad);
    double per_pixel = (double)(l->c / l->groups * l->k * l->k * l->o);

    s.sh = s.sw = l->stride;
    s.groups = l->groups;
    while (s.h > l->k + l->stride &&
           per_pixel * (double)(s.h / l->stride * s.w / l->stride) > MACS_MAX) {
        s.h = s.h * 3 / 4;
        s.w = s.w * 3 / 4 + 1;
    }
    return s;
}

/* Return: whether the shape is too large for runs with few cases */
static inline bool conv_too_large(const struct conv_shape *s)
{
    double per_pixel = (double)(s->c / s->groups * s->kh * s->kw * s->o);

    return t_share() > 1 && per_pixel * (double)(s->h / s->sh * s->w / s->sw) > 16 * MACS_MAX;
}

/* Sometimes makes the pixel stride larger than the channels. */
static inline void conv_random_pixels(struct conv_shape *s)
{
    s->x_pixel = t_range(0, 2) == 0 ? s->c + (size_t)t_range(1, 9) : 0;
    s->y_pixel = t_range(0, 2) == 0 ? s->o + (size_t)t_range(1, 9) : 0;
}

static inline void conv_random_pads(struct conv_shape *s, int64_t most)
{
    s->top = (size_t)t_range(0, most);
    s->left = (size_t)t_range(0, most);
    s->bottom = (size_t)t_range(0, most);
    s->right = (size_t)t_range(0, most);
}

static inline struct conv_shape conv_random(void)
{
    struct conv_shape s = {.n = (size_t)t_range(1, 2), .groups = 1};

    s.kh = (size_t)t_range(1, 5);
    s.kw = (size_t)t_range(1, 5);
    s.sh = (size_t)t_range(1, 3);
    s.sw = (size_t)t_range(1, 3);
    s.dh = (size_t)(t_range(0, 3) == 0 ? t_range(2, 3) : 1);
    s.dw = (size_t)(t_range(0, 3) == 0 ? t_range(2, 3) : 1);
    conv_random_pads(&s, 3);
    s.h = (size_t)t_range(1, 9);
    s.w = (size_t)t_range(1, 14);
    while (s.h + s.top + s.bottom < (s.kh - 1) * s.dh + 1) {
        s.h++;
    }
    while (s.w + s.left + s.right < (s.kw - 1) * s.dw + 1) {
        s.w++;
    }
    s.c = (size_t)t_range(1, 40);
    s.o = (size_t)t_range(1, 70);
    switch (t_range(0, 3)) {
    case 0: /* depthwise, sometimes with several outputs a channel */
        s.c = (size_t)t_range(1, 80);
        s.groups = s.c;
        s.o = s.c * (size_t)(t_range(0, 3) == 0 ? 2 : 1);
        break;
    case 1: /* grouped */
        s.groups = (size_t)t_range(2, 4);
        s.c = s.groups * (size_t)t_range(1, 12);
        s.o = s.groups * (size_t)t_range(1, 20);
        break;
    default:
        break;
    }
    conv_random_pixels(&s);
    return s;
}

/* 3x3, 5x5, 1xN or Nx1 of stride 1: tiles cut by the borders, channels around a cache line and
 * around the block, panels around the register tile */
static inline struct conv_shape conv_random_winograd(void)
{
    static const size_t windows[][2] = {{3, 3}, {3, 3}, {3, 3}, {5, 5}, {1, 3},
                                        {3, 1}, {1, 5}, {5, 1}, {1, 7}, {7, 1}};
    const size_t *k = windows[t_range(0, base_array_count(windows) - 1)];
    struct conv_shape s = conv_same(0, 0, 0, 0, k[0], k[1]);

    s.n = (size_t)t_range(1, 2);
    s.c = (size_t)(t_range(0, 3) ? t_range(8, 40) : t_range(60, 210));
    s.h = (size_t)t_range(1, 13);
    s.w = (size_t)t_range(1, 13);
    s.o = (size_t)(t_range(0, 3) ? t_range(8, 40) : t_range(60, 80));
    conv_random_pads(&s, (int64_t)base_max(k[0], k[1]));
    if (s.h + s.top + s.bottom < s.kh) {
        s.h = s.kh;
    }
    if (s.w + s.left + s.right < s.kw) {
        s.w = s.kw;
    }
    conv_random_pixels(&s);
    return s;
}

static inline size_t conv_out_height(const struct conv_shape *s)
{
    return (s->h + s->top + s->bottom - (s->kh - 1) * s->dh - 1) / s->sh + 1;
}

static inline size_t conv_out_width(const struct conv_shape *s)
{
    return (s->w + s->left + s->right - (s->kw - 1) * s->dw - 1) / s->sw + 1;
}

static inline struct mdl_window conv_window(const struct conv_shape *s)
{
    return (struct mdl_window){.rank = 2,
                               .kernel = {s->kh, s->kw},
                               .stride = {s->sh, s->sw},
                               .dilation = {s->dh, s->dw},
                               .pad_begin = {s->top, s->left},
                               .pad_end = {s->bottom, s->right}};
}

/* Return: characters written. */
static inline int conv_tell(const struct conv_shape *s, const char *name, char *ret, size_t bytes)
{
    return snprintf(ret, bytes,
                    "%s: %zux%zux%zux%zu -> %zu, %zux%zu/%zux%zu dil %zux%zu pad %zu,%zu,%zu,%zu "
                    "groups %zu pixels %zu,%zu",
                    name, s->n, s->c, s->h, s->w, s->o, s->kh, s->kw, s->sh, s->sw, s->dh, s->dw,
                    s->top, s->left, s->bottom, s->right, s->groups, s->x_pixel, s->y_pixel);
}
