/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pixfmt.h - the pixel formats of images: numbers, names, sizes
 *
 * This is the only table of pixel formats, for ipc/ and kernels/. The numbers are those of the wire
 * protocol and of piped.h. Header-only. Threads: any.
 *
 * To add a format: a row here, its constants in ipc/piped.h and kernels/image/image.h (the build
 * fails without them), and its conversion in kernels/image/.
 */
#pragma once

#include "base/base.h"

/* X(ID, name, bytes per pixel in a row of the first plane, planes, width and height must be even),
 * in the order of the numbers. TENSOR is not an image but the model's input tensors. A second plane
 * has half as many rows and the same stride. */
#define PIXFMT_LIST(X)                                                                             \
    X(TENSOR, "tensor", 0, 0, false)                                                               \
    X(RGB24, "rgb24", 3, 1, false)                                                                 \
    X(BGR24, "bgr24", 3, 1, false)                                                                 \
    X(GRAY8, "gray8", 1, 1, false)                                                                 \
    X(NV12, "nv12", 1, 2, true)                                                                    \
    X(YUYV, "yuyv", 2, 1, true)

#define PIXFMT_ID(ID, ...) PIXFMT_##ID,
enum pixfmt { PIXFMT_LIST(PIXFMT_ID) PIXFMT_COUNT };

/* "tensor rgb24 ... ": a string literal for help and messages */
#define PIXFMT_NAME(ID, name, ...) name " "
#define PIXFMT_NAMES PIXFMT_LIST(PIXFMT_NAME)

#define PIXFMT_ROW(ID, name, pixel_bytes, planes, even) {name, pixel_bytes, planes, even},
static const struct pixfmt_info {
    const char *name;
    uint8_t pixel_bytes, planes;
    bool even;
} pixfmt_table[PIXFMT_COUNT] = {PIXFMT_LIST(PIXFMT_ROW)};

/** pixfmt_find() - looks up the format whose name is the first @bytes of @name. Return: true with
 * *ret set; false: there is none. */
static inline bool pixfmt_find(const char *name, size_t bytes, enum pixfmt *ret)
{
    for (unsigned f = 0; f < PIXFMT_COUNT; f++) {
        if (strlen(pixfmt_table[f].name) == bytes &&
            memcmp(pixfmt_table[f].name, name, bytes) == 0) {
            *ret = (enum pixfmt)f;
            return true;
        }
    }
    return false;
}

/** pixfmt_row_bytes() - Return: bytes of a row without padding. @width: at most UINT32_MAX / 3. */
static inline uint32_t pixfmt_row_bytes(enum pixfmt f, uint32_t width)
{
    return pixfmt_table[f].pixel_bytes * width;
}

/** pixfmt_image_bytes() - @stride: bytes from row to row. Return: bytes of the image; 0: invalid (a
 * tensor, no pixels, a stride shorter than a row, an odd size that must be even, or more bytes
 * than size_t holds). */
static inline size_t pixfmt_image_bytes(enum pixfmt f, uint32_t width, uint32_t height,
                                        uint32_t stride)
{
    const struct pixfmt_info *i = &pixfmt_table[f];
    size_t row, plane, total;

    if (i->planes == 0 || width == 0 || height == 0 || (i->even && (width % 2 || height % 2)) ||
        !base_mul(width, i->pixel_bytes, &row) || stride < row ||
        !base_mul(stride, height, &plane) ||
        !base_add(plane, i->planes == 2 ? plane / 2 : 0, &total)) {
        return 0;
    }
    return total;
}
