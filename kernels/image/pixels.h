/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/image/pixels.h - converts pixels to normalised elements of a tensor; for preprocess.c and
 * for primitives that read images themselves
 */
#pragma once

#include "kernels/image/image.h"

/* One period of a pattern over three channels and whole vectors of any width. */
#define KRN_PIXELS_PATTERN 48u

/* How to compute x = (p - mean) / std for the tensor's channels that pixels have. */
struct krn_pixel_scale {
    float mean[4], std[4];
    float inverse[4]; /* 1 / std */
    /* (p - mean) * inverse, corrected by its remainder, equals the quotient bit for bit for every p
     * of 0..255 */
    bool by_product;
};

/* The format of a tensor's row, and how a pixel becomes elements. */
struct krn_pixel_sink {
    ptrdiff_t pixel_bytes, channel_bytes;
    bool is_u8;      /* else f32 */
    size_t channels; /* of the tensor */
    size_t k;        /* channels that pixels are computed in: 1 (luma) or 3 (R, G, B) */
    uint8_t from[3]; /* channel c of the tensor takes from[c] of a pixel */
    struct krn_pixel_scale scale;
    /* the scale of three interleaved channels */
    float mean[KRN_PIXELS_PATTERN], std[KRN_PIXELS_PATTERN], inverse[KRN_PIXELS_PATTERN];
};

void krn_pixels_sink_init(struct krn_pixel_sink *s, const struct mdl_preproc *pre,
                          enum mdl_dtype dtype, size_t channels, ptrdiff_t channel_bytes,
                          ptrdiff_t pixel_bytes);

/* In all functions below, @row is element 0 of a row of the tensor. */
/** krn_pixels_fill() - sets @n pixels from @x to @pixel, normalised. @pixel: 0..255 for each of the
 * tensor's channels. */
void krn_pixels_fill(const struct krn_pixel_sink *s, void *row, size_t x, size_t n,
                     const float *pixel);
/** krn_pixels_put_f32() - writes @n pixels from @x, given as s->k interleaved values 0..255; may
 * swap values of @p. */
void krn_pixels_put_f32(const struct krn_pixel_sink *s, void *row, size_t x, size_t n, float *p);
/** krn_pixels_convert() - converts @n pixels of the image from (@x0, @y) to R, G, B or luma
 * (@k). */
void krn_pixels_convert(const struct krn_image *img, size_t k, uint32_t x0, uint32_t y, size_t n,
                        uint8_t *out);
/** krn_pixels_copy_row() - writes a whole row from @n pixels of the image, from (@x0, @y). */
void krn_pixels_copy_row(const struct krn_pixel_sink *s, void *row, const struct krn_image *img,
                         uint32_t x0, uint32_t y, size_t n);

static inline uint8_t krn_clip_u8(int v)
{
    return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

/* BT.601 luma of full-range RGB, rounded: (0.299 R + 0.587 G + 0.114 B), weights in 1/2^16 */
static inline uint8_t krn_luma(int r, int g, int b)
{
    return (uint8_t)((19595 * r + 38470 * g + 7471 * b + 32768) >> 16);
}

/* BT.601 limited range to full-range RGB, weights in 1/2^8: 255/219, 1.596, 0.392, 0.813, 2.017 */
static inline void krn_yuv(int y, int u, int v, size_t k, uint8_t *out)
{
    int c = 298 * (y - 16) + 128, d = u - 128, e = v - 128;

    if (k == 1) {
        out[0] = krn_clip_u8(c >> 8);
        return;
    }
    out[0] = krn_clip_u8((c + 409 * e) >> 8);
    out[1] = krn_clip_u8((c - 100 * d - 208 * e) >> 8);
    out[2] = krn_clip_u8((c + 516 * d) >> 8);
}

/** krn_pixel() - pixel (@x, @y) as R, G, B (@k = 3) or luma (@k = 1). With constant @format and @k,
 * it compiles to that case only. Chroma is taken from the pixel's own block, not interpolated. */
__attribute__((always_inline)) static inline void krn_pixel(const struct krn_image *img,
                                                            enum krn_pixfmt format, size_t k,
                                                            uint32_t x, uint32_t y, uint8_t *out)
{
    const uint8_t *row = img->data + (size_t)y * img->stride;
    const uint8_t *p, *uv;

    switch (format) {
    case KRN_PIX_RGB24:
    case KRN_PIX_BGR24:
        p = row + (size_t)x * 3;
        if (k == 1) {
            out[0] = krn_luma(p[format == KRN_PIX_RGB24 ? 0 : 2], p[1],
                              p[format == KRN_PIX_RGB24 ? 2 : 0]);
        } else {
            out[0] = p[format == KRN_PIX_RGB24 ? 0 : 2];
            out[1] = p[1];
            out[2] = p[format == KRN_PIX_RGB24 ? 2 : 0];
        }
        break;
    case KRN_PIX_NV12:
        uv = img->data + (size_t)img->stride * img->height + (size_t)(y / 2) * img->stride +
             (x & ~1u);
        krn_yuv(row[x], uv[0], uv[1], k, out);
        break;
    case KRN_PIX_YUYV:
        p = row + (size_t)(x & ~1u) * 2;
        krn_yuv(p[(x & 1) * 2], p[1], p[3], k, out);
        break;
    case KRN_PIX_GRAY8:
    case KRN_PIX_COUNT:
        for (size_t c = 0; c < k; c++) {
            out[c] = row[x];
        }
        break;
    }
}
