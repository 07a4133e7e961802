/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/preprocess.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "kernels/pixels.h"

#define GREY 128.0f

/* One output position along an axis. Bilinear: p[first] + t (p[last] - p[first]). Area: weights
 * w_first, dst, ..., dst, w_last over first..last in units of 1/dst source pixel; their sum is the
 * axis' src. */
struct tap {
    uint32_t first, last, w_first, w_last;
    float t;
};

/* A run of @src source pixels from @src0 becomes @dst pixels from @dst0. */
struct axis {
    uint32_t src0, src, dst0, dst;
    bool area;
};

struct job {
    const struct krn_image *img;
    struct krn_pixel_sink sink;
    size_t images, height, width; /* of the model's input */
    ptrdiff_t image_stride;
    struct axis x, y;
    size_t parts;
    struct tap *taps; /* x.dst, in scratch */
    float *rows;      /* per part: 3 rows of row_floats, in scratch */
    size_t row_floats;
};

static bool layout(const struct mdl_preproc *pre, const struct mdl_tensor *t, size_t *ret_c,
                   size_t *ret_h, size_t *ret_w)
{
    if (t->rank != 3 && t->rank != 4) {
        return false;
    }
    size_t first = t->rank - 3;

    *ret_c = first + (pre->nhwc ? 2 : 0);
    *ret_h = first + (pre->nhwc ? 0 : 1);
    *ret_w = first + (pre->nhwc ? 1 : 2);
    return true;
}

bool krn_preprocess_ok(const struct mdl_preproc *pre, const struct mdl_tensor *shape)
{
    size_t c, h, w;

    if (!layout(pre, shape, &c, &h, &w) || (shape->dtype != MDL_F32 && shape->dtype != MDL_U8)) {
        return false;
    }
    for (size_t d = 0; d < shape->rank; d++) {
        if (shape->dim[d] == 0 || shape->dim[d] > UINT32_MAX / 4) {
            return false;
        }
    }
    return true;
}

static size_t taps_bytes(size_t width)
{
    return base_align_up(width * sizeof(struct tap), 64);
}

static size_t row_floats(size_t width)
{
    return base_align_up(width * 3, 16);
}

size_t krn_preprocess_scratch_bytes(const struct mdl_model *m, size_t width)
{
    size_t c, h, w;

    if (m->input_count == 0) {
        return 0;
    }
    const struct mdl_tensor *t = &m->tensors[m->inputs[0].tensor];
    if (!krn_preprocess_ok(&m->preproc, t) || !layout(&m->preproc, t, &c, &h, &w)) {
        return 0;
    }
    return taps_bytes(t->dim[w]) + (width ? width : 1) * 3 * row_floats(t->dim[w]) * sizeof(float);
}

/* Centre of output i in source pixels: (i + 1/2) src / dst - 1/2, kept as an exact fraction. */
static struct tap tap_of(const struct axis *a, uint32_t i)
{
    struct tap tap = {0};

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

static uint32_t round_div(uint64_t a, uint64_t b)
{
    return (uint32_t)((a + b / 2) / b);
}

static uint32_t at_least_one(uint32_t v, uint32_t most)
{
    return v < 1 ? 1 : v > most ? most : v;
}

/* Which part of the image goes to which part of the input. */
static void fit(struct job *j, int how)
{
    uint32_t iw = j->img->width, ih = j->img->height;
    uint32_t w = (uint32_t)j->width, h = (uint32_t)j->height;
    bool wide = (uint64_t)iw * h > (uint64_t)ih * w; /* wider than the input */

    j->x = (struct axis){.src = iw, .dst = w};
    j->y = (struct axis){.src = ih, .dst = h};
    if (how == MDL_FIT_CROP && wide) {
        j->x.src = at_least_one(round_div((uint64_t)ih * w, h), iw);
        j->x.src0 = (iw - j->x.src) / 2;
    } else if (how == MDL_FIT_CROP) {
        j->y.src = at_least_one(round_div((uint64_t)iw * h, w), ih);
        j->y.src0 = (ih - j->y.src) / 2;
    } else if (how == MDL_FIT_LETTERBOX && wide) {
        j->y.dst = at_least_one(round_div((uint64_t)ih * w, iw), h);
        j->y.dst0 = (h - j->y.dst) / 2;
    } else if (how == MDL_FIT_LETTERBOX) {
        j->x.dst = at_least_one(round_div((uint64_t)iw * h, ih), w);
        j->x.dst0 = (w - j->x.dst) / 2;
    }
    j->x.area = j->x.src > 2 * (uint64_t)j->x.dst;
    j->y.area = j->y.src > 2 * (uint64_t)j->y.dst;
}

/* One source row resized along x: x.dst pixels of K channels, interleaved. */
__attribute__((always_inline)) static inline void
resize_row(const struct job *j, uint32_t row, enum krn_pixfmt format, const size_t k, float *out)
{
    const uint32_t count = j->x.dst;
    uint8_t a[3] = {0}, b[3] = {0};

    for (uint32_t i = 0; i < count; i++) {
        const struct tap *t = &j->taps[i];

        krn_pixel(j->img, format, k, t->first, row, a);
        krn_pixel(j->img, format, k, t->last, row, b);
        if (!j->x.area) {
            for (size_t c = 0; c < k; c++) {
                out[i * k + c] = (float)a[c] + t->t * (float)(b[c] - a[c]);
            }
            continue;
        }
        uint64_t middle[3] = {0};
        for (uint32_t x = t->first + 1; x < t->last; x++) {
            uint8_t p[3] = {0};

            krn_pixel(j->img, format, k, x, row, p);
            for (size_t c = 0; c < k; c++) {
                middle[c] += p[c];
            }
        }
        for (size_t c = 0; c < k; c++) {
            uint64_t sum = (uint64_t)a[c] * t->w_first + middle[c] * count +
                           (t->last > t->first ? (uint64_t)b[c] * t->w_last : 0);
            out[i * k + c] = (float)((double)sum / (double)j->x.src);
        }
    }
}

static void resize_row_any(const struct job *j, uint32_t row, float *out)
{
#define CASE(format)                                                                               \
    case format:                                                                                   \
        if (j->sink.k == 1) {                                                                      \
            resize_row(j, row, format, 1, out);                                                    \
        } else {                                                                                   \
            resize_row(j, row, format, 3, out);                                                    \
        }                                                                                          \
        break
    switch (j->img->format) {
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

/* The two source rows that were resized last, so that enlarging does each row once. */
struct row_cache {
    float *row[2];
    uint32_t source[2];
    bool valid[2];
};

static const float *cached_row(const struct job *j, struct row_cache *cache, uint32_t source)
{
    size_t slot = source & 1; /* neighbours never share a slot */

    if (!cache->valid[slot] || cache->source[slot] != source) {
        resize_row_any(j, source, cache->row[slot]);
        cache->source[slot] = source;
        cache->valid[slot] = true;
    }
    return cache->row[slot];
}

/* Output row @i of the fitted rectangle, not yet normalised. */
static void blend_rows(const struct job *j, struct row_cache *cache, uint32_t i, float *out)
{
    struct tap t = tap_of(&j->y, i);
    size_t n = (size_t)j->x.dst * j->sink.k;

    if (!j->y.area) {
        const float *a = cached_row(j, cache, t.first), *b = cached_row(j, cache, t.last);

        for (size_t p = 0; p < n; p++) {
            out[p] = a[p] + t.t * (b[p] - a[p]);
        }
        return;
    }
    memset(out, 0, n * sizeof(*out));
    for (uint32_t row = t.first; row <= t.last; row++) {
        const float *a = cached_row(j, cache, row);
        float w = (float)(row == t.first ? t.w_first : row == t.last ? t.w_last : j->y.dst);

        for (size_t p = 0; p < n; p++) {
            out[p] += w * a[p];
        }
    }
    for (size_t p = 0; p < n; p++) {
        out[p] /= (float)j->y.src;
    }
}

static void resized_row(const struct job *j, struct row_cache *cache, size_t row, float *line)
{
    struct krn_pixel_sink s = j->sink;

    s.dst += (ptrdiff_t)row * s.row_bytes;
    if (row < j->y.dst0 || row - j->y.dst0 >= j->y.dst) {
        krn_pixels_fill(&s, 0, j->width, GREY);
        return;
    }
    krn_pixels_fill(&s, 0, j->x.dst0, GREY);
    blend_rows(j, cache, (uint32_t)(row - j->y.dst0), line);
    krn_pixels_put_f32(&s, j->x.dst0, j->x.dst, line);
    krn_pixels_fill(&s, (size_t)j->x.dst0 + j->x.dst, j->width - j->x.dst0 - j->x.dst, GREY);
}

/* Source pixels as they are: no rectangle, no interpolation. */
static void direct_row(const struct job *j, size_t row)
{
    struct krn_pixel_sink s = j->sink;

    s.dst += (ptrdiff_t)row * s.row_bytes;
    krn_pixels_copy_row(&s, j->img, j->x.src0, (uint32_t)row + j->y.src0, j->width);
}

static void job_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range r = krn_share(j->images * j->height, 1, part, j->parts);
    float *rows = j->rows + part * 3 * j->row_floats;
    struct row_cache cache = {.row = {rows, rows + j->row_floats}};
    bool direct = j->x.src == j->x.dst && j->y.src == j->y.dst && j->x.dst == j->width &&
                  j->y.dst == j->height;

    for (size_t i = r.begin; i < r.end; i++) {
        struct job one = *j;

        one.sink.dst += (ptrdiff_t)(i / j->height) * j->image_stride;
        if (direct) {
            direct_row(&one, i % j->height);
        } else {
            resized_row(&one, &cache, i % j->height, rows + 2 * j->row_floats);
        }
    }
}

void krn_preprocess(const struct krn_image *img, const struct mdl_preproc *pre,
                    const struct mdl_tensor *shape, void *dst, const struct krn_exec *exec)
{
    struct job j = {.img = img, .parts = exec->width ? exec->width : 1};
    size_t c, h, w, bytes = mdl_dtype_bytes(shape->dtype);

    if (!krn_preprocess_ok(pre, shape) || !layout(pre, shape, &c, &h, &w)) {
        return;
    }
    j.images = shape->rank == 4 ? shape->dim[0] : 1;
    j.height = shape->dim[h];
    j.width = shape->dim[w];
    j.image_stride = shape->rank == 4 ? shape->stride[0] * (ptrdiff_t)bytes : 0;
    krn_pixels_sink_init(&j.sink, pre, shape->dtype, shape->dim[c], dst,
                         shape->stride[c] * (ptrdiff_t)bytes, shape->stride[h] * (ptrdiff_t)bytes,
                         shape->stride[w] * (ptrdiff_t)bytes);
    fit(&j, (int)pre->fit);
    j.taps = exec->scratch;
    j.rows = (float *)(void *)((uint8_t *)exec->scratch + taps_bytes(j.width));
    j.row_floats = row_floats(j.width);
    for (uint32_t i = 0; i < j.x.dst; i++) {
        j.taps[i] = tap_of(&j.x, i);
    }
    krn_parallel(exec->pool, j.parts, job_part, &j);
}
