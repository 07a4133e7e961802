/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/pixels.h"

#include <math.h>
#include <string.h>

#include "base.h"

/* Pixels that are converted at a time: small enough to stay in the first-level cache. */
#define CHUNK ((size_t)256)
/* One period of a pattern over three channels and whole vectors of any width. */
#define PATTERN 48

size_t krn_image_bytes(const struct krn_image *img)
{
    static const uint8_t row_bytes[KRN_PIX_COUNT] = {[KRN_PIX_RGB24] = 3,
                                                     [KRN_PIX_BGR24] = 3,
                                                     [KRN_PIX_GRAY8] = 1,
                                                     [KRN_PIX_NV12] = 1,
                                                     [KRN_PIX_YUYV] = 2};
    size_t row, plane, total;
    bool pairs = img->format == KRN_PIX_NV12 || img->format == KRN_PIX_YUYV;

    if ((unsigned)img->format >= KRN_PIX_COUNT || img->width == 0 || img->height == 0 ||
        (pairs && (img->width % 2 || img->height % 2)) ||
        !base_mul(img->width, row_bytes[img->format], &row) || img->stride < row ||
        !base_mul(img->stride, img->height, &plane)) {
        return 0;
    }
    if (img->format != KRN_PIX_NV12) {
        return plane;
    }
    return base_add(plane, plane / 2, &total) ? total : 0;
}

void krn_pixels_sink_init(struct krn_pixel_sink *s, const struct mdl_preproc *pre,
                          enum mdl_dtype dtype, size_t channels, void *dst, ptrdiff_t channel_bytes,
                          ptrdiff_t row_bytes, ptrdiff_t pixel_bytes)
{
    *s = (struct krn_pixel_sink){.dst = dst,
                                 .row_bytes = row_bytes,
                                 .pixel_bytes = pixel_bytes,
                                 .channel_bytes = channel_bytes,
                                 .is_u8 = dtype == MDL_U8,
                                 .channels = channels,
                                 .k = channels == 1 ? 1 : 3};
    for (uint8_t c = 0; c < 3; c++) {
        s->from[c] = s->k == 1 ? 0 : pre->bgr ? 2 - c : c;
    }
    for (size_t c = 0; c < base_array_count(s->mean); c++) {
        s->mean[c] = pre->known ? pre->mean[c] : 0;
        s->std[c] = pre->known ? pre->std[c] : 1;
    }
}

static void put(const struct krn_pixel_sink *s, uint8_t *at, size_t channel, float value)
{
    float x = (value - s->mean[channel]) / s->std[channel];

    if (s->is_u8) {
        *at = x >= 255 ? 255 : x > 0 ? (uint8_t)lrintf(x) : 0; /* NaN becomes 0 */
    } else {
        memcpy(at, &x, sizeof(x));
    }
}

/* Channels that pixels do not have: 0, whatever the mean. */
static void clear_rest(const struct krn_pixel_sink *s, size_t x, size_t n)
{
    for (size_t c = s->k; c < s->channels; c++) {
        uint8_t *at = s->dst + (ptrdiff_t)c * s->channel_bytes + (ptrdiff_t)x * s->pixel_bytes;

        for (size_t i = 0; i < n; i++, at += s->pixel_bytes) {
            memset(at, 0, s->is_u8 ? 1 : sizeof(float));
        }
    }
}

void krn_pixels_fill(const struct krn_pixel_sink *s, size_t x, size_t n, float value)
{
    for (size_t c = 0; c < s->channels && c < s->k; c++) {
        uint8_t *at = s->dst + (ptrdiff_t)c * s->channel_bytes + (ptrdiff_t)x * s->pixel_bytes;

        for (size_t i = 0; i < n; i++, at += s->pixel_bytes) {
            put(s, at, c, value);
        }
    }
    clear_rest(s, x, n);
}

void krn_pixels_put_f32(const struct krn_pixel_sink *s, size_t x, size_t n, const float *p)
{
    for (size_t c = 0; c < s->channels && c < s->k; c++) {
        uint8_t *at = s->dst + (ptrdiff_t)c * s->channel_bytes + (ptrdiff_t)x * s->pixel_bytes;

        for (size_t i = 0; i < n; i++, at += s->pixel_bytes) {
            put(s, at, c, p[i * s->k + s->from[c]]);
        }
    }
    clear_rest(s, x, n);
}

/* The two layouts that matter, written for the compiler's vectoriser and compiled for each ISA.
 * Division stays a division: a product with 1/std would round differently. */
__attribute__((always_inline)) static inline void planar(const uint8_t *restrict p, size_t n,
                                                         const size_t k, float mean, float std,
                                                         float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = ((float)p[i * k] - mean) / std;
    }
}

__attribute__((always_inline)) static inline void interleaved(const uint8_t *restrict p, size_t n,
                                                              const float *restrict mean,
                                                              const float *restrict std,
                                                              float *restrict out)
{
    size_t i = 0;

    for (; i + PATTERN <= n; i += PATTERN) {
        for (size_t j = 0; j < PATTERN; j++) {
            out[i + j] = ((float)p[i + j] - mean[j]) / std[j];
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        out[i + j] = ((float)p[i + j] - mean[j]) / std[j];
    }
}

#define ROWS(isa, attributes)                                                                      \
    attributes static void planar1_##isa(const uint8_t *p, size_t n, float mean, float std,        \
                                         float *out)                                               \
    {                                                                                              \
        planar(p, n, 1, mean, std, out);                                                           \
    }                                                                                              \
    attributes static void planar3_##isa(const uint8_t *p, size_t n, float mean, float std,        \
                                         float *out)                                               \
    {                                                                                              \
        planar(p, n, 3, mean, std, out);                                                           \
    }                                                                                              \
    attributes static void interleaved_##isa(const uint8_t *p, size_t n, const float *mean,        \
                                             const float *std, float *out)                         \
    {                                                                                              \
        interleaved(p, n, mean, std, out);                                                         \
    }

ROWS(any, __attribute__((optimize("O3"))))
#if defined(__x86_64__)
ROWS(avx2, __attribute__((optimize("O3"), target("avx2"))))
#define HAVE_AVX2() (krn_cpu_features() & KRN_CPU_AVX2)
#define PICK(row) (HAVE_AVX2() ? row##_avx2 : row##_any)
#else
#define PICK(row) (row##_any)
#endif

static void put_planar(const struct krn_pixel_sink *s, size_t x, size_t n, const uint8_t *p,
                       const uint8_t *from)
{
    for (size_t c = 0; c < s->channels && c < s->k; c++) {
        float *out = (float *)(void *)(s->dst + (ptrdiff_t)c * s->channel_bytes) + x;

        if (s->k == 1) {
            PICK(planar1)(p, n, s->mean[c], s->std[c], out);
        } else {
            PICK(planar3)(p + from[c], n, s->mean[c], s->std[c], out);
        }
    }
    clear_rest(s, x, n);
}

static void put_interleaved(const struct krn_pixel_sink *s, size_t x, size_t n, const uint8_t *p)
{
    float mean[PATTERN], std[PATTERN];

    for (size_t j = 0; j < PATTERN; j++) {
        mean[j] = s->mean[j % 3];
        std[j] = s->std[j % 3];
    }
    PICK(interleaved)(p, n * 3, mean, std, (float *)(void *)s->dst + x * 3);
}

static void put_any(const struct krn_pixel_sink *s, size_t x, size_t n, const uint8_t *p,
                    const uint8_t *from)
{
    for (size_t c = 0; c < s->channels && c < s->k; c++) {
        uint8_t *at = s->dst + (ptrdiff_t)c * s->channel_bytes + (ptrdiff_t)x * s->pixel_bytes;

        for (size_t i = 0; i < n; i++, at += s->pixel_bytes) {
            put(s, at, c, (float)p[i * s->k + from[c]]);
        }
    }
    clear_rest(s, x, n);
}

static void convert(const struct krn_image *img, size_t k, uint32_t x0, uint32_t y, size_t n,
                    uint8_t *out)
{
#define CASE(format)                                                                               \
    case format:                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            if (k == 1) {                                                                          \
                krn_pixel(img, format, 1, x0 + (uint32_t)i, y, out + i);                           \
            } else {                                                                               \
                krn_pixel(img, format, 3, x0 + (uint32_t)i, y, out + i * 3);                       \
            }                                                                                      \
        }                                                                                          \
        break
    switch (img->format) {
        CASE(KRN_PIX_RGB24);
        CASE(KRN_PIX_BGR24);
        CASE(KRN_PIX_GRAY8);
        CASE(KRN_PIX_NV12);
        CASE(KRN_PIX_YUYV);
    default:
        break;
    }
#undef CASE
}

/* RGB to BGR or back, into @out, which may be @p. Return: @out. */
static const uint8_t *swapped(const uint8_t *p, size_t n, uint8_t *out)
{
    for (size_t i = 0; i < n * 3; i += 3) {
        uint8_t first = p[i], middle = p[i + 1];

        out[i] = p[i + 2];
        out[i + 1] = middle;
        out[i + 2] = first;
    }
    return out;
}

void krn_pixels_copy_row(const struct krn_pixel_sink *s, const struct krn_image *img, uint32_t x0,
                         uint32_t y, size_t n)
{
    bool rgb = s->k == 3 && (img->format == KRN_PIX_RGB24 || img->format == KRN_PIX_BGR24);
    bool as_is = rgb || (s->k == 1 && img->format == KRN_PIX_GRAY8);
    bool flipped = rgb && img->format == KRN_PIX_BGR24; /* taken as they lie, by another order */
    uint8_t chunk[CHUNK * 3], from[3];

    for (size_t c = 0; c < 3; c++) {
        from[c] = flipped ? 2 - s->from[c] : s->from[c];
    }
    bool is_planar = !s->is_u8 && s->pixel_bytes == sizeof(float);
    bool is_interleaved = !s->is_u8 && s->channels == 3 && s->channel_bytes == sizeof(float) &&
                          s->pixel_bytes == 3 * sizeof(float);

    for (size_t x = 0; x < n; x += CHUNK) {
        size_t count = base_min(CHUNK, n - x);
        const uint8_t *p = chunk;

        if (as_is) {
            p = img->data + (size_t)y * img->stride + (x0 + x) * s->k;
        } else {
            convert(img, s->k, x0 + (uint32_t)x, y, count, chunk);
        }
        if (is_planar) {
            put_planar(s, x, count, p, from);
        } else if (is_interleaved) {
            put_interleaved(s, x, count, from[0] == 0 ? p : swapped(p, count, chunk));
        } else {
            put_any(s, x, count, p, from);
        }
    }
}
