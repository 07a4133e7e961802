/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image/image.h - an image from a client
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum krn_pixfmt {
    KRN_PIX_RGB24,
    KRN_PIX_BGR24,
    KRN_PIX_GRAY8,
    KRN_PIX_NV12,
    KRN_PIX_YUYV,
    KRN_PIX_COUNT
};

struct krn_image {
    enum krn_pixfmt format;
    uint32_t width, height; /* pixels; NV12 and YUYV: even */
    /* Bytes from row to row of the first plane. The UV plane of NV12 follows at stride * height,
     * with the same stride. */
    uint32_t stride;
    const uint8_t *data; /* borrowed */
};

/** krn_pixfmt() - Return: the format with number @f in pixfmt.h; KRN_PIX_COUNT if there is no such
 * image format. Threads: any. */
enum krn_pixfmt krn_pixfmt(unsigned f);

/** krn_image_bytes() - Return: the bytes that @img occupies, from its shape; 0 if the shape is
 * invalid (overflow, or a stride shorter than a row). Does not read data. Threads: any. */
size_t krn_image_bytes(const struct krn_image *img);
