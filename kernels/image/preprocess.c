/* SPDX-License-Identifier: Apache-2.0 */
/* How an image becomes input 0 of a model. */
#include "kernels/image/image.h"

#include "base/base.h"
#include "base/picture_fit.h"
#include "kernels/image/pixels.h"
#include "kernels/image/resample.h"

struct job {
    struct krn_image img;
    struct krn_pixel_sink sink;
    size_t height, width; /* of the model's input */
    size_t begin, end;    /* rows to make, over all its images */
    uint8_t *dst;         /* its element 0 */
    ptrdiff_t image_bytes, row_bytes;
    struct krn_axis x, y;
    size_t parts;
    struct krn_tap *taps; /* x.dst, in scratch */
    const float *pad;     /* a pixel of the bars, by channel of the tensor */
    float *rows;          /* per part: 3 rows of row_floats, in scratch */
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
    return base_align_up(width * sizeof(struct krn_tap), 64);
}

static size_t row_floats(size_t width)
{
    return base_align_up(3 * width + 1, 16);
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

_Static_assert((int)MDL_FIT_STRETCH == PICTURE_STRETCH && (int)MDL_FIT_CROP == PICTURE_CROP &&
                   (int)MDL_FIT_LETTERBOX == PICTURE_LETTERBOX,
               "one list of ways to fit");

static struct krn_axis axis_of(const struct picture_axis *a)
{
    return (struct krn_axis){.src0 = a->src0,
                             .src = a->src,
                             .dst0 = a->dst0,
                             .dst = a->dst,
                             .area = a->src > 2 * (uint64_t)a->dst};
}

/* Chooses which part of the image goes to which part of the input. */
static void fit(struct job *j, int how)
{
    struct picture_axis x, y;

    picture_fit((enum picture_fit)how, j->img.width, j->img.height, (uint32_t)j->width,
                (uint32_t)j->height, &x, &y);
    j->x = axis_of(&x);
    j->y = axis_of(&y);
}

/* The last two resized source rows, so that enlarging resizes each row once. */
struct row_cache {
    float *row[2];
    uint32_t source[2];
    bool valid[2];
};

static const float *cached_row(const struct job *j, struct row_cache *cache, uint32_t source)
{
    size_t slot = source & 1; /* neighbours never share a slot */

    if (!cache->valid[slot] || cache->source[slot] != source) {
        krn_resample_row(&j->img, j->sink.k, &j->x, j->taps, source, cache->row[slot]);
        cache->source[slot] = source;
        cache->valid[slot] = true;
    }
    return cache->row[slot];
}

/* Output row @i of the fitted rectangle, not yet normalised. */
static void blend_rows(const struct job *j, struct row_cache *cache, uint32_t i, float *out)
{
    struct krn_tap t = krn_tap_of(&j->y, i);
    size_t n = (size_t)j->x.dst * j->sink.k;

    if (!j->y.area) {
        krn_resample_between(cached_row(j, cache, t.first), cached_row(j, cache, t.last), t.t, n,
                             out);
        return;
    }
    memset(out, 0, n * sizeof(*out));
    for (uint32_t row = t.first; row <= t.last; row++) {
        krn_resample_add(cached_row(j, cache, row),
                         (float)(row == t.first  ? t.w_first
                                 : row == t.last ? t.w_last
                                                 : j->y.dst),
                         n, out);
    }
    krn_resample_divide((float)j->y.src, n, out);
}

static void resized_row(const struct job *j, struct row_cache *cache, size_t row, float *line,
                        void *dst)
{
    const struct krn_pixel_sink *s = &j->sink;

    if (row < j->y.dst0 || row - j->y.dst0 >= j->y.dst) {
        krn_pixels_fill(s, dst, 0, j->width, j->pad);
        return;
    }
    krn_pixels_fill(s, dst, 0, j->x.dst0, j->pad);
    blend_rows(j, cache, (uint32_t)(row - j->y.dst0), line);
    krn_pixels_put_f32(s, dst, j->x.dst0, j->x.dst, line);
    krn_pixels_fill(s, dst, (size_t)j->x.dst0 + j->x.dst, j->width - j->x.dst0 - j->x.dst, j->pad);
}

static void job_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range r = krn_share_run(j->end - j->begin, 1, part, j->parts);
    float *rows = j->rows + part * 3 * j->row_floats;
    struct row_cache cache = {.row = {rows, rows + j->row_floats}};
    bool direct = j->x.src == j->x.dst && j->y.src == j->y.dst && j->x.dst == j->width &&
                  j->y.dst == j->height;

    for (size_t i = j->begin + r.begin; i < j->begin + r.end; i++) {
        size_t row = i % j->height;
        uint8_t *dst =
            j->dst + (ptrdiff_t)(i / j->height) * j->image_bytes + (ptrdiff_t)row * j->row_bytes;

        if (direct) { /* whole input, no interpolation */
            krn_pixels_copy_row(&j->sink, dst, &j->img, j->x.src0, (uint32_t)row + j->y.src0,
                                j->width);
        } else {
            resized_row(j, &cache, row, rows + 2 * j->row_floats, dst);
        }
    }
}

size_t krn_preprocess_rows(const struct mdl_preproc *pre, const struct mdl_tensor *shape)
{
    size_t c, h, w;

    return layout(pre, shape, &c, &h, &w) ? (shape->rank == 4 ? shape->dim[0] : 1) * shape->dim[h]
                                          : 0;
}

void krn_preprocess(const struct krn_image *img, const struct mdl_preproc *pre,
                    const struct mdl_tensor *shape, void *dst, const struct krn_exec *exec)
{
    krn_preprocess_slice(img, pre, shape, dst, 0, krn_preprocess_rows(pre, shape), exec);
}

void krn_preprocess_slice(const struct krn_image *img, const struct mdl_preproc *pre,
                          const struct mdl_tensor *shape, void *dst, size_t begin, size_t end,
                          const struct krn_exec *exec)
{
    struct job j = {
        .img = *img, .begin = begin, .end = end, .parts = exec->width ? exec->width : 1};
    size_t c, h, w, bytes = mdl_dtype_bytes(shape->dtype);

    if (!krn_preprocess_ok(pre, shape) || !layout(pre, shape, &c, &h, &w)) {
        return;
    }
    j.height = shape->dim[h];
    j.width = shape->dim[w];
    j.dst = dst;
    j.image_bytes = shape->rank == 4 ? shape->stride[0] * (ptrdiff_t)bytes : 0;
    j.row_bytes = shape->stride[h] * (ptrdiff_t)bytes;
    krn_pixels_sink_init(&j.sink, pre, shape->dtype, shape->dim[c],
                         shape->stride[c] * (ptrdiff_t)bytes, shape->stride[w] * (ptrdiff_t)bytes);
    if (j.sink.k == 3 && img->format == KRN_PIX_BGR24) { /* copied as it is, in another channel
                                                          * order */
        j.img.format = KRN_PIX_RGB24;
        j.sink.from[0] = 2 - j.sink.from[0];
        j.sink.from[2] = 2 - j.sink.from[2];
    }
    fit(&j, (int)pre->fit);
    j.pad = pre->pad;
    j.taps = exec->scratch;
    j.rows = (float *)(void *)((uint8_t *)exec->scratch + taps_bytes(j.width));
    j.row_floats = row_floats(j.width);
    for (uint32_t i = 0; i < j.x.dst; i++) {
        j.taps[i] = krn_tap_of(&j.x, i);
    }
    krn_parallel(exec->pool, j.parts, job_part, &j);
}

/* ---- input 0 of a model ---- */

/* The tensor that an image is converted to. */
static size_t target(const struct mdl_model *m)
{
    size_t entry = krn_image_entry(m);

    return entry != MDL_NONE ? m->ops[entry].out[0] : m->inputs[0].tensor;
}

static size_t readers_of(const struct mdl_model *m, size_t storage)
{
    size_t readers = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        for (size_t k = 0; k <= MDL_OP_IN_MAX; k++) {
            size_t t = k < MDL_OP_IN_MAX ? m->ops[i].in[k] : m->ops[i].residual_in;

            readers += t != MDL_NONE && m->tensors[t].storage == storage;
        }
    }
    for (size_t i = 0; i < m->output_count; i++) {
        readers += m->tensors[m->outputs[i].tensor].storage == storage;
    }
    return readers;
}

/* Return: whether @x has the elements of tensor @t, where @map gives t's dims for [N][C][H][W]. */
static bool same_elements(const struct mdl_tensor *x, const struct mdl_tensor *t,
                          const size_t map[4])
{
    bool same = x->storage == t->storage && x->offset == t->offset && x->dtype == t->dtype &&
                x->rank == 4 && t->rank == 4;

    for (size_t d = 0; same && d < 4; d++) {
        same = x->dim[d] == t->dim[map[d]] && (x->dim[d] == 1 || x->stride[d] == t->stride[map[d]]);
    }
    return same;
}

size_t krn_image_reader(const struct mdl_model *m)
{
    static const size_t nchw[4] = {0, 1, 2, 3}, nhwc[4] = {0, 3, 1, 2};
    size_t entry = krn_image_entry(m), reader = entry == MDL_NONE ? 0 : entry + 1;

    if (m->input_count == 0 || reader >= m->op_count || m->ops[reader].in[0] == MDL_NONE) {
        return MDL_NONE;
    }
    const struct mdl_tensor *t = &m->tensors[target(m)];

    return same_elements(&m->tensors[m->ops[reader].in[0]], t, m->preproc.nhwc ? nhwc : nchw) &&
                   readers_of(m, t->storage) == 1 && krn_preprocess_ok(&m->preproc, t)
               ? reader
               : MDL_NONE;
}

bool krn_image_is_plain(const struct mdl_model *m, const struct krn_image *img)
{
    const struct mdl_tensor *t = &m->tensors[target(m)];
    size_t c, h, w;

    return layout(&m->preproc, t, &c, &h, &w) && img->width == t->dim[w] &&
           img->height == t->dim[h];
}

void krn_image_convert(const struct mdl_model *m, const struct krn_mem *mem,
                       const struct krn_exec *exec)
{
    uint64_t began_ns = mem->image_ns ? base_now_ns() : 0;
    size_t tensor = target(m);

    krn_preprocess(mem->image, &m->preproc, &m->tensors[tensor], krn_tensor_ptr(m, tensor, mem),
                   exec);
    if (mem->image_ns) {
        *mem->image_ns += base_now_ns() - began_ns;
    }
}
