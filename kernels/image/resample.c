/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/image/resample.h"

#include "base/base.h"
#include "kernels/common/cpu.h"
#include "kernels/image/pixels.h"

#ifdef __clang__ /* base_optimize() does nothing there */
#pragma STDC FP_CONTRACT OFF
#endif

/* Pixels converted at a time, unless they are read in place. */
#define CHUNK 256u
/*
 * With fewer source pixels than this, the sums fit 31 bits, and a product with 1/src in double
 * rounds to the same float as the quotient a/src. The relative error of the product is 2^-52. If
 * a/src is not the middle of two floats, its relative distance from the middle exceeds 2^-49, since
 * both are multiples of small fractions: 1/src > 2^-16 and 2^-24. And it cannot be the middle, or
 * another dyadic fraction that is not a float: src has no power of two that large.
 */
#define NARROW (1u << 16)

/* four bytes, integers, floats: R, G, B of a pixel and the byte after it */
typedef uint8_t b16 __attribute__((vector_size(16)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef float f4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));

struct krn_tap krn_tap_of(const struct krn_axis *a, uint32_t i)
{
    struct krn_tap tap = {0};

    if (a->area) {
        uint64_t begin = (uint64_t)i * a->src, end = begin + a->src; /* in 1/dst pixels */

        tap.first = (uint32_t)(begin / a->dst);
        tap.last = (uint32_t)((end - 1) / a->dst);
        tap.w_first = (uint32_t)((uint64_t)(tap.first + 1) * a->dst - begin);
        tap.w_last = (uint32_t)(end - (uint64_t)tap.last * a->dst);
    } else {
        int64_t den = 2 * (int64_t)a->dst;
        int64_t num = (2 * (int64_t)i + 1) * a->src - a->dst;

        if (num < 0) {
            num = 0;
        }
        tap.first = (uint32_t)(num / den);
        tap.t = (float)(num % den) / (float)den;
        tap.last = tap.first + 1;
        if (tap.last >= a->src) {
            tap.first = tap.last = a->src - 1;
            tap.t = 0;
        }
    }
    tap.first += a->src0;
    tap.last += a->src0;
    return tap;
}

/* ---- one output, of any image ---- */

/* For outputs whose pixels are too many to convert at once, or whose sum exceeds 31 bits. */
static void wide(const struct krn_image *img, size_t k, const struct krn_axis *axis,
                 const struct krn_tap *t, uint32_t y, float *out)
{
    uint64_t sum[3] = {0};
    uint8_t p[CHUNK * 3];

    for (uint32_t x = t->first, n; x <= t->last; x += n) {
        n = base_min(CHUNK, t->last - x + 1);
        krn_pixels_convert(img, k, x, y, n, p);
        for (size_t i = 0; i < n; i++) {
            uint64_t w = x + i == t->first ? t->w_first : x + i == t->last ? t->w_last : axis->dst;

            for (size_t c = 0; c < k; c++) {
                sum[c] += w * p[i * k + c];
            }
        }
    }
    for (size_t c = 0; c < k; c++) {
        out[c] = (float)((double)sum[c] / (double)axis->src);
    }
}

/* ---- runs of outputs, for each instruction set ---- */

/* Adjacent outputs whose pixels all lie in @p, which starts at pixel @x0; four bytes of each pixel
 * may be read. */
struct run {
    const uint8_t *p;
    uint32_t x0;
    const struct krn_tap *taps;
    size_t count;
    uint32_t dst, src;
    float *out; /* and one behind the last */
};

#define INLINE __attribute__((always_inline)) static inline

INLINE i4 pixel(const struct run *r, uint32_t x)
{
    int32_t p;

    memcpy(&p, r->p + (size_t)(x - r->x0) * 3, sizeof(p));
    return (i4)__builtin_shufflevector((b16)(i4){p}, (b16){0}, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16,
                                       16, 16, 3, 16, 16, 16);
}

INLINE void put(float *out, f4 v)
{
    memcpy(out, &v, sizeof(v));
}

INLINE void bilinear3(const struct run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct krn_tap *t = &r->taps[i];
        i4 a = pixel(r, t->first), b = pixel(r, t->last);

        put(r->out + i * 3,
            __builtin_convertvector(a, f4) + t->t * __builtin_convertvector(b - a, f4));
    }
}

/* Every output has @least inner pixels, some have one more. */
INLINE void area3(const struct run *r, uint32_t least)
{
    const double inverse = 1.0 / (double)r->src;

    for (size_t i = 0; i < r->count; i++) {
        const struct krn_tap *t = &r->taps[i];
        const uint32_t first = t->first, more = t->last - first - 1 - least;
        i4 middle = pixel(r, first + least + 1) * (int32_t)more, sum;

        for (uint32_t x = first + 1; x <= first + least; x++) {
            middle += pixel(r, x);
        }
        sum = pixel(r, first) * (int32_t)t->w_first + middle * (int32_t)r->dst +
              pixel(r, t->last) * (int32_t)t->w_last;
        put(r->out + i * 3,
            __builtin_convertvector(__builtin_convertvector(sum, d4) * inverse, f4));
    }
}

INLINE void bilinear1(const struct run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct krn_tap *t = &r->taps[i];
        int a = r->p[t->first - r->x0], b = r->p[t->last - r->x0];

        r->out[i] = (float)a + t->t * (float)(b - a);
    }
}

INLINE void area1(const struct run *r, uint32_t least)
{
    const double inverse = 1.0 / (double)r->src;

    for (size_t i = 0; i < r->count; i++) {
        const struct krn_tap *t = &r->taps[i];
        const uint8_t *p = r->p + (t->first - r->x0);
        const uint32_t last = t->last - t->first;
        uint32_t middle = p[least + 1] * (last - 1 - least), sum;

        for (uint32_t x = 1; x <= least; x++) {
            middle += p[x];
        }
        sum = p[0] * t->w_first + middle * r->dst + p[last] * t->w_last;
        r->out[i] = (float)((double)(int32_t)sum * inverse);
    }
}

INLINE void between(const float *restrict a, const float *restrict b, float t, size_t n,
                    float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = a[i] + t * (b[i] - a[i]);
    }
}

INLINE void add(const float *restrict a, float w, size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] += w * a[i];
    }
}

INLINE void divide(float by, size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] /= by;
    }
}

#define ISA(isa, attributes)                                                                       \
    attributes static void run_##isa(const struct run *run, size_t k, bool is_area)                \
    {                                                                                              \
        const struct run at = *run, *r = &at; /* stores cannot alias it */                         \
                                                                                                   \
        if (is_area) {                                                                             \
            uint32_t least = (r->src + r->dst - 1) / r->dst - 2;                                   \
                                                                                                   \
            k == 1 ? area1(r, least) : area3(r, least);                                            \
        } else {                                                                                   \
            k == 1 ? bilinear1(r) : bilinear3(r);                                                  \
        }                                                                                          \
    }                                                                                              \
    attributes static void between_##isa(const float *a, const float *b, float t, size_t n,        \
                                         float *out)                                               \
    {                                                                                              \
        between(a, b, t, n, out);                                                                  \
    }                                                                                              \
    attributes static void add_##isa(const float *a, float w, size_t n, float *out)                \
    {                                                                                              \
        add(a, w, n, out);                                                                         \
    }                                                                                              \
    attributes static void divide_##isa(float by, size_t n, float *out)                            \
    {                                                                                              \
        divide(by, n, out);                                                                        \
    }

ISA(any, base_optimize("O3", "fp-contract=off"))
#if defined(__x86_64__)
ISA(avx2, base_optimize("O3", "fp-contract=off") __attribute__((target("avx2"))))
#define PICK(fn) (krn_cpu_features() & KRN_CPU_AVX2 ? fn##_avx2 : fn##_any)
#else
#define PICK(fn) (fn##_any)
#endif

void krn_resample_row(const struct krn_image *img, size_t k, const struct krn_axis *axis,
                      const struct krn_tap *taps, uint32_t y, float *out)
{
    bool as_is = k == 3 ? img->format == KRN_PIX_RGB24 : img->format == KRN_PIX_GRAY8;
    uint8_t chunk[CHUNK * 3 + 1] = {0};

    for (uint32_t i = 0, end; i < axis->dst; i = end) {
        struct run r = {.taps = taps + i, .dst = axis->dst, .src = axis->src, .out = out + i * k};
        uint32_t limit;

        end = i + 1;
        if (as_is && taps[i].last + 1 < img->width) { /* no byte follows the last pixel */
            r.p = img->data + (size_t)y * img->stride;
            limit = img->width - 1;
        } else {
            r.x0 = taps[i].first;
            r.p = chunk;
            limit = r.x0 + base_min(CHUNK, img->width - r.x0);
            krn_pixels_convert(img, k, r.x0, y, limit - r.x0, chunk);
        }
        if (axis->area && (taps[i].last >= limit || axis->src >= NARROW)) {
            wide(img, k, axis, &taps[i], y, r.out);
            continue;
        }
        while (end < axis->dst && taps[end].last < limit) {
            end++;
        }
        r.count = end - i;
        PICK(run)(&r, k, axis->area);
    }
}

void krn_resample_between(const float *a, const float *b, float t, size_t n, float *out)
{
    PICK(between)(a, b, t, n, out);
}

void krn_resample_add(const float *a, float w, size_t n, float *out)
{
    PICK(add)(a, w, n, out);
}

void krn_resample_divide(float by, size_t n, float *out)
{
    PICK(divide)(by, n, out);
}
