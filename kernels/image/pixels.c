/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/image/pixels.h"

#include <math.h>

#include "base/base.h"
#include "base/pixfmt.h"
#include "kernels/common/cpu.h"

#define INLINE __attribute__((always_inline)) static inline

/* Pixels converted at a time; small enough for the first-level cache. */
#define CHUNK ((size_t)256)

static const enum pixfmt format[] = {[KRN_PIX_RGB24] = PIXFMT_RGB24,
                                     [KRN_PIX_BGR24] = PIXFMT_BGR24,
                                     [KRN_PIX_GRAY8] = PIXFMT_GRAY8,
                                     [KRN_PIX_NV12] = PIXFMT_NV12,
                                     [KRN_PIX_YUYV] = PIXFMT_YUYV};
_Static_assert(base_array_count(format) == KRN_PIX_COUNT && KRN_PIX_COUNT == PIXFMT_COUNT - 1,
               "one for each but the tensors");

enum krn_pixfmt krn_pixfmt(unsigned f)
{
    enum krn_pixfmt k = 0;

    while (k < KRN_PIX_COUNT && (unsigned)format[k] != f) {
        k++;
    }
    return k;
}

size_t krn_image_bytes(const struct krn_image *img)
{
    return (unsigned)img->format < KRN_PIX_COUNT
               ? pixfmt_image_bytes(format[img->format], img->width, img->height, img->stride)
               : 0;
}

/* The two common layouts, written for the compiler's vectoriser and compiled for each ISA. A
 * product with 1/std alone would round differently from the division. */
INLINE float scaled(float p, float mean, float std, float inverse, const bool by_product)
{
    float d = p - mean, q = d * inverse;

    return by_product ? __builtin_fmaf(__builtin_fmaf(-q, std, d), inverse, q) : d / std;
}

/* values are bytes @p, or floats @f */
INLINE void planar(const uint8_t *restrict p, const float *restrict f, const bool bytes, size_t n,
                   const size_t k, float mean, float std, float inverse, const bool by_product,
                   float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = scaled(bytes ? (float)p[i * k] : f[i * k], mean, std, inverse, by_product);
    }
}

INLINE void interleaved(const uint8_t *restrict p, const float *restrict f, const bool bytes,
                        size_t n, const float *restrict mean, const float *restrict std,
                        const float *restrict inverse, const bool by_product, float *restrict out)
{
    size_t i = 0;

    for (; i + KRN_PIXELS_PATTERN <= n; i += KRN_PIXELS_PATTERN) {
        for (size_t j = 0; j < KRN_PIXELS_PATTERN; j++) {
            out[i + j] =
                scaled(bytes ? (float)p[i + j] : f[i + j], mean[j], std[j], inverse[j], by_product);
        }
    }
    for (size_t j = 0; i + j < n; j++) {
        out[i + j] =
            scaled(bytes ? (float)p[i + j] : f[i + j], mean[j], std[j], inverse[j], by_product);
    }
}

/* Bytes of luma and chroma; the two pixels of a pair share chroma. */
struct yuv {
    const uint8_t *y, *u, *v;
    size_t y_step, uv_step, pairs; /* pairs: at most CHUNK / 2 */
};

/* krn_yuv(), each step for all pixels at once */
INLINE void yuv_pairs(const struct yuv *s, uint8_t *restrict out)
{
    const size_t n = 2 * s->pairs, y_step = s->y_step, uv_step = s->uv_step;
    int32_t luma[CHUNK], red[CHUNK], green[CHUNK], blue[CHUNK];
    uint8_t r[CHUNK], g[CHUNK], b[CHUNK];

    for (size_t i = 0; i < n; i++) {
        luma[i] = 298 * (s->y[i * y_step] - 16) + 128;
    }
    for (size_t i = 0; i < s->pairs; i++) {
        int d = s->u[i * uv_step] - 128, e = s->v[i * uv_step] - 128;

        red[2 * i] = red[2 * i + 1] = 409 * e;
        green[2 * i] = green[2 * i + 1] = -100 * d - 208 * e;
        blue[2 * i] = blue[2 * i + 1] = 516 * d;
    }
    for (size_t i = 0; i < n; i++) {
        r[i] = krn_clip_u8((luma[i] + red[i]) >> 8);
        g[i] = krn_clip_u8((luma[i] + green[i]) >> 8);
        b[i] = krn_clip_u8((luma[i] + blue[i]) >> 8);
    }
    for (size_t i = 0; i < n; i++) {
        out[3 * i] = r[i];
        out[3 * i + 1] = g[i];
        out[3 * i + 2] = b[i];
    }
}

#define PLANAR(name, k, bytes, isa, product, attributes)                                           \
    attributes static void name##_##isa(const void *p, size_t n, const struct krn_pixel_scale *s,  \
                                        size_t c, float *out)                                      \
    {                                                                                              \
        if ((bytes) && (product) && s->by_product) {                                               \
            planar(p, p, bytes, n, k, s->mean[c], s->std[c], s->inverse[c], product, out);         \
        } else {                                                                                   \
            planar(p, p, bytes, n, k, s->mean[c], s->std[c], s->inverse[c], false, out);           \
        }                                                                                          \
    }
#define INTERLEAVED(name, bytes, isa, product, attributes)                                         \
    attributes static void name##_##isa(const void *p, size_t n, const struct krn_pixel_sink *s,   \
                                        float *out)                                                \
    {                                                                                              \
        if ((bytes) && (product) && s->scale.by_product) {                                         \
            interleaved(p, p, bytes, n, s->mean, s->std, s->inverse, product, out);                \
        } else {                                                                                   \
            interleaved(p, p, bytes, n, s->mean, s->std, s->inverse, false, out);                  \
        }                                                                                          \
    }
/* @product: whether the ISA multiplies and adds with one rounding; floats are divided */
#define ROWS(isa, product, attributes)                                                             \
    PLANAR(planar1, 1, true, isa, product, attributes)                                             \
    PLANAR(planar3, 3, true, isa, product, attributes)                                             \
    PLANAR(planar1_f32, 1, false, isa, product, attributes)                                        \
    PLANAR(planar3_f32, 3, false, isa, product, attributes)                                        \
    INTERLEAVED(interleaved, true, isa, product, attributes)                                       \
    INTERLEAVED(interleaved_f32, false, isa, product, attributes)                                  \
    attributes static void nv12_##isa(struct yuv s, uint8_t *out)                                  \
    {                                                                                              \
        s.y_step = 1;                                                                              \
        s.uv_step = 2;                                                                             \
        yuv_pairs(&s, out);                                                                        \
    }                                                                                              \
    attributes static void yuyv_##isa(struct yuv s, uint8_t *out)                                  \
    {                                                                                              \
        s.y_step = 2;                                                                              \
        s.uv_step = 4;                                                                             \
        yuv_pairs(&s, out);                                                                        \
    }

#if defined(__FP_FAST_FMAF)
ROWS(any, true, base_optimize("O3"))
#else
ROWS(any, false, base_optimize("O3"))
#endif
#if defined(__x86_64__)
ROWS(avx2, true, base_optimize("O3") __attribute__((target("avx2,fma"))))
#define HAVE_AVX2() (krn_cpu_features() & KRN_CPU_AVX2)
#define PICK(row) (HAVE_AVX2() ? row##_avx2 : row##_any)
#else
#define PICK(row) (row##_any)
#endif

/* Return: whether the product equals the quotient for every byte, tested on the code that will
 * run. */
static bool product_is_exact(struct krn_pixel_scale s, size_t channels)
{
    uint8_t p[256];
    float product[256], quotient[256];
    bool exact = true;

    for (size_t i = 0; i < sizeof(p); i++) {
        p[i] = (uint8_t)i;
    }
    for (size_t c = 0; exact && c < channels; c++) {
        s.by_product = true;
        PICK(planar1)(p, sizeof(p), &s, c, product);
        s.by_product = false;
        PICK(planar1)(p, sizeof(p), &s, c, quotient);
        exact = memcmp(product, quotient, sizeof(product)) == 0;
    }
    return exact;
}

void krn_pixels_sink_init(struct krn_pixel_sink *s, const struct mdl_preproc *pre,
                          enum mdl_dtype dtype, size_t channels, ptrdiff_t channel_bytes,
                          ptrdiff_t pixel_bytes)
{
    struct krn_pixel_scale *scale = &s->scale;

    s->pixel_bytes = pixel_bytes;
    s->channel_bytes = channel_bytes;
    s->is_u8 = dtype == MDL_U8;
    s->channels = channels;
    s->k = channels == 1 ? 1 : 3;
    for (uint8_t c = 0; c < 3; c++) {
        s->from[c] = s->k == 1 ? 0 : pre->bgr ? 2 - c : c;
    }
    for (size_t c = 0; c < base_array_count(scale->mean); c++) {
        scale->mean[c] = pre->known ? pre->mean[c] : 0;
        scale->std[c] = pre->known ? pre->std[c] : 1;
        scale->inverse[c] = 1.0f / scale->std[c];
    }
    for (size_t j = 0; j < KRN_PIXELS_PATTERN; j++) {
        s->mean[j] = scale->mean[j % 3];
        s->std[j] = scale->std[j % 3];
        s->inverse[j] = scale->inverse[j % 3];
    }
    scale->by_product = !s->is_u8 && product_is_exact(*scale, s->k);
}

static void put_element(const struct krn_pixel_sink *s, uint8_t *at, size_t channel, float value)
{
    float x = (value - s->scale.mean[channel]) / s->scale.std[channel];

    if (s->is_u8) {
        *at = x >= 255 ? 255 : x > 0 ? (uint8_t)lrintf(x) : 0; /* NaN becomes 0 */
    } else {
        memcpy(at, &x, sizeof(x));
    }
}

static uint8_t *element(const struct krn_pixel_sink *s, void *row, size_t x, size_t channel)
{
    return (uint8_t *)row + (ptrdiff_t)channel * s->channel_bytes + (ptrdiff_t)x * s->pixel_bytes;
}

/* Channels that pixels do not have: 0, whatever the mean. */
static void clear_rest(const struct krn_pixel_sink *s, void *row, size_t x, size_t n)
{
    for (size_t c = s->k; c < s->channels; c++) {
        uint8_t *at = element(s, row, x, c);

        for (size_t i = 0; i < n; i++, at += s->pixel_bytes) {
            memset(at, 0, s->is_u8 ? 1 : sizeof(float));
        }
    }
}

void krn_pixels_fill(const struct krn_pixel_sink *s, void *row, size_t x, size_t n,
                     const float *pixel)
{
    for (size_t c = 0; c < s->channels && c < s->k; c++) {
        uint8_t *at = element(s, row, x, c);

        for (size_t i = 0; i < n; i++, at += s->pixel_bytes) {
            put_element(s, at, c, pixel[c]);
        }
    }
    clear_rest(s, row, x, n);
}

/* Contiguous elements of a channel, or exactly three interleaved channels. */
static bool is_planar(const struct krn_pixel_sink *s)
{
    return !s->is_u8 && s->pixel_bytes == sizeof(float);
}
static bool is_interleaved(const struct krn_pixel_sink *s)
{
    return !s->is_u8 && s->channels == 3 && s->channel_bytes == sizeof(float) &&
           s->pixel_bytes == 3 * sizeof(float);
}

/* @p: s->k interleaved values each, of which channel c takes from[c], in the tensor's own order if
 * is_interleaved() */
INLINE void put(const struct krn_pixel_sink *s, void *row, size_t x, size_t n, const void *p,
                bool bytes, const uint8_t *from)
{
    const uint8_t *at = p;

    if (is_interleaved(s)) {
        (bytes ? PICK(interleaved) : PICK(interleaved_f32))(p, n * 3, s, (float *)row + x * 3);
        return;
    }
    for (size_t c = 0; c < s->channels && c < s->k; c++) {
        const void *first = at + from[c] * (bytes ? 1 : sizeof(float));
        uint8_t *out = element(s, row, x, c);

        if (is_planar(s) && s->k == 1) {
            (bytes ? PICK(planar1) : PICK(planar1_f32))(first, n, &s->scale, c, (void *)out);
        } else if (is_planar(s)) {
            (bytes ? PICK(planar3) : PICK(planar3_f32))(first, n, &s->scale, c, (void *)out);
        } else {
            for (size_t i = 0; i < n; i++, out += s->pixel_bytes) {
                size_t j = i * s->k;

                put_element(s, out, c,
                            bytes ? (float)((const uint8_t *)first)[j] : ((const float *)first)[j]);
            }
        }
    }
    clear_rest(s, row, x, n);
}

void krn_pixels_put_f32(const struct krn_pixel_sink *s, void *row, size_t x, size_t n, float *p)
{
    for (size_t i = 0; is_interleaved(s) && s->from[0] != 0 && i < n * 3; i += 3) {
        float first = p[i];

        p[i] = p[i + 2];
        p[i + 2] = first;
    }
    put(s, row, x, n, p, false, s->from);
}

static void convert_any(const struct krn_image *img, size_t k, uint32_t x0, uint32_t y, size_t n,
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
    case KRN_PIX_COUNT:
        break;
    }
#undef CASE
}

/* Whole pairs of pixels, R, G and B of them. */
static void convert_pairs(const struct krn_image *img, uint32_t x0, uint32_t y, size_t n,
                          uint8_t *out)
{
    const uint8_t *row = img->data + (size_t)y * img->stride;

    if (img->format == KRN_PIX_NV12) {
        const uint8_t *uv =
            img->data + (size_t)img->stride * img->height + (size_t)(y / 2) * img->stride + x0;

        PICK(nv12)((struct yuv){.y = row + x0, .u = uv, .v = uv + 1, .pairs = n / 2}, out);
    } else {
        row += (size_t)x0 * 2;
        PICK(yuyv)((struct yuv){.y = row, .u = row + 1, .v = row + 3, .pairs = n / 2}, out);
    }
}

void krn_pixels_convert(const struct krn_image *img, size_t k, uint32_t x0, uint32_t y, size_t n,
                        uint8_t *out)
{
    if (k == 1 || (img->format != KRN_PIX_NV12 && img->format != KRN_PIX_YUYV)) {
        convert_any(img, k, x0, y, n, out);
        return;
    }
    if (x0 % 2 && n > 0) { /* the second of a pair */
        convert_any(img, 3, x0++, y, 1, out);
        n--;
        out += 3;
    }
    for (size_t now; n > 1; n -= now, x0 += (uint32_t)now, out += now * 3) {
        now = base_min(CHUNK, n) & ~(size_t)1;
        convert_pairs(img, x0, y, now, out);
    }
    convert_any(img, 3, x0, y, n, out);
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

void krn_pixels_copy_row(const struct krn_pixel_sink *s, void *row, const struct krn_image *img,
                         uint32_t x0, uint32_t y, size_t n)
{
    bool rgb = s->k == 3 && (img->format == KRN_PIX_RGB24 || img->format == KRN_PIX_BGR24);
    bool as_is = rgb || (s->k == 1 && img->format == KRN_PIX_GRAY8);
    bool flipped = rgb && img->format == KRN_PIX_BGR24; /* copied as they are, in another channel
                                                         * order */
    uint8_t chunk[CHUNK * 3], from[3];

    for (size_t c = 0; c < 3; c++) {
        from[c] = flipped ? 2 - s->from[c] : s->from[c];
    }

    for (size_t x = 0; x < n; x += CHUNK) {
        size_t count = base_min(CHUNK, n - x);
        const uint8_t *p = chunk;

        if (as_is) {
            p = img->data + (size_t)y * img->stride + (x0 + x) * s->k;
        } else {
            krn_pixels_convert(img, s->k, x0 + (uint32_t)x, y, count, chunk);
        }
        p = is_interleaved(s) && from[0] != 0 ? swapped(p, count, chunk) : p;
        put(s, row, x, count, p, true, from);
    }
}
