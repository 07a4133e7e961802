/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Depthwise convolution: channels side by side in vectors, weights packed [tap][channel]. Inside an
 * output row, runs of BLOCK pixels whose windows lie wholly inside the image's width share the
 * loads of weights, and for windows of width 3 and 5 also those of the input columns; pixels at the
 * edges are done one by one over the taps that exist.
 */
#include "base.h"
#include "kernels/conv_common.h"
#include "kernels/epilogue_vec.h"

#define BLOCK 4u

static bool shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_conv *c)
{
    return krn_conv_of(m, op, c) && c->groups == c->x.c && c->cg == 1 && c->og == 1;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_conv c;

    return shape_of(m, op, &c);
}

static size_t padded_channels(const struct krn_conv *c)
{
    return base_align_up(c->x.c, KRN_VL);
}

static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_conv c;

    return shape_of(m, op, &c) ? c.taps * padded_channels(&c) * sizeof(float) : 0;
}

static void pack(const struct mdl_model *m, const struct mdl_op *op, void *dst)
{
    const struct mdl_tensor *w = &m->tensors[op->in[1]];
    const uint8_t *src = krn_const_ptr(m, op->in[1]);
    struct krn_conv c;

    if (!shape_of(m, op, &c)) {
        return;
    }
    for (size_t t = 0; t < c.taps; t++) {
        float *row = (float *)dst + t * padded_channels(&c);

        for (size_t o = 0; o < padded_channels(&c); o++) {
            row[o] = o >= c.x.c ? 0.0f
                                : (op->scale ? op->scale[o] : 1.0f) *
                                      krn_load_unaligned(src, (ptrdiff_t)o * w->stride[0] +
                                                                  (ptrdiff_t)t * c.tap_stride);
        }
    }
}

struct job {
    const struct krn_call *call;
    struct krn_conv c;
    struct krn_epilogue epilogue;
    size_t parts;
};

/* a run of output pixels of one row: windows start at x, with rows [ky) of the window inside */
struct run {
    const struct job *j;
    const float *x; /* window row ky.begin, column 0 of the first pixel, channel 0 */
    const float *w; /* tap (ky.begin, 0) */
    float *y;
    size_t first; /* pixel, for the residual */
    struct krn_range ky;
};

KRN_INLINE void store(const struct run *r, size_t pixel, size_t c, size_t n, vf sum)
{
    const struct krn_epilogue *e = &r->j->epilogue;
    float *y = r->y + pixel * r->j->c.y.pixel + c;
    const float *res = e->res ? e->res + (r->first + pixel) * e->res_pixel + c : NULL;
    vf shift = vf_set(0.0f), rv = vf_set(0.0f);

    if (n == KRN_VL) {
        shift = e->shift ? vf_load(e->shift + c) : shift;
        rv = res ? vf_load(res) : rv;
        vf_store(y, krn_epilogue_vec(e, sum, shift, rv));
    } else {
        shift = e->shift ? vf_load_n(e->shift + c, n) : shift;
        rv = res ? vf_load_n(res, n) : rv;
        vf_store_n(y, krn_epilogue_vec(e, sum, shift, rv), n);
    }
}

KRN_INLINE vf load(const float *p, size_t n)
{
    return n == KRN_VL ? vf_load(p) : vf_load_n(p, n);
}

/* BLOCK pixels, n channels from c. kw and sw are constants where this is inlined for a known
 * window, and the columns that neighbouring pixels share are loaded once. */
KRN_INLINE void block_known(const struct run *r, size_t c, size_t n, const size_t kw,
                            const size_t sw)
{
    const struct krn_conv *v = &r->j->c;
    size_t padded = padded_channels(v), row = v->win.dh * v->x.row;
    const float *x = r->x + c, *w = r->w + c;
    vf acc[BLOCK];

#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        acc[i] = vf_set(0.0f);
    }
    for (size_t y = r->ky.begin; y < r->ky.end; y++) {
        vf column[(BLOCK - 1) * 2 + 5], weight[5];

#pragma GCC unroll 16
        for (size_t i = 0; i < (BLOCK - 1) * sw + kw; i++) {
            column[i] = load(x + i * v->x.pixel, n);
        }
#pragma GCC unroll 8
        for (size_t k = 0; k < kw; k++) {
            weight[k] = vf_load(w + k * padded);
        }
#pragma GCC unroll 8
        for (size_t k = 0; k < kw; k++) {
#pragma GCC unroll 4
            for (size_t i = 0; i < BLOCK; i++) {
                acc[i] += column[i * sw + k] * weight[k];
            }
        }
        x += row;
        w += kw * padded;
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        store(r, i, c, n, acc[i]);
    }
}

/* BLOCK pixels of any window */
KRN_INLINE void block_any(const struct run *r, size_t c, size_t n)
{
    const struct krn_conv *v = &r->j->c;
    size_t padded = padded_channels(v), step = v->win.sw * v->x.pixel;
    const float *w = r->w + c;
    vf acc[BLOCK];

#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        acc[i] = vf_set(0.0f);
    }
    for (size_t y = r->ky.begin; y < r->ky.end; y++) {
        const float *x = r->x + (y - r->ky.begin) * v->win.dh * v->x.row + c;

        for (size_t k = 0; k < v->win.kw; k++, x += v->win.dw * v->x.pixel, w += padded) {
            vf weight = vf_load(w);

#pragma GCC unroll 4
            for (size_t i = 0; i < BLOCK; i++) {
                acc[i] += load(x + i * step, n) * weight;
            }
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < BLOCK; i++) {
        store(r, i, c, n, acc[i]);
    }
}

#define CHANNELS(call_full, call_rest)                                                             \
    do {                                                                                           \
        size_t channels = r->j->c.x.c, c = 0;                                                      \
                                                                                                   \
        for (; c + KRN_VL <= channels; c += KRN_VL) {                                              \
            const size_t n = KRN_VL;                                                               \
            call_full;                                                                             \
        }                                                                                          \
        if (c < channels) {                                                                        \
            size_t n = channels - c;                                                               \
            call_rest;                                                                             \
        }                                                                                          \
    } while (0)

static void run_3_1(const struct run *r)
{
    CHANNELS(block_known(r, c, n, 3, 1), block_any(r, c, n));
}
static void run_3_2(const struct run *r)
{
    CHANNELS(block_known(r, c, n, 3, 2), block_any(r, c, n));
}
static void run_5_1(const struct run *r)
{
    CHANNELS(block_known(r, c, n, 5, 1), block_any(r, c, n));
}
static void run_5_2(const struct run *r)
{
    CHANNELS(block_known(r, c, n, 5, 2), block_any(r, c, n));
}
static void run_any(const struct run *r)
{
    CHANNELS(block_any(r, c, n), block_any(r, c, n));
}

static void (*runner_of(const struct krn_win *w))(const struct run *)
{
    if (w->dw == 1 && w->sw <= 2 && (w->kw == 3 || w->kw == 5)) {
        return w->kw == 3 ? (w->sw == 1 ? run_3_1 : run_3_2) : (w->sw == 1 ? run_5_1 : run_5_2);
    }
    return run_any;
}

/* one pixel over the taps that exist */
static void run_pixel(const struct run *r, struct krn_range kx)
{
    const struct krn_conv *v = &r->j->c;
    size_t padded = padded_channels(v);

    for (size_t c = 0; c < v->x.c; c += KRN_VL) {
        size_t n = base_min(v->x.c - c, (size_t)KRN_VL);
        vf acc = vf_set(0.0f);

        for (size_t y = r->ky.begin; y < r->ky.end; y++) {
            const float *x = r->x + (y - r->ky.begin) * v->win.dh * v->x.row + c;
            const float *w = r->w + ((y - r->ky.begin) * v->win.kw + kx.begin) * padded + c;

            for (size_t k = kx.begin; k < kx.end; k++, w += padded) {
                acc += load(x + (k - kx.begin) * v->win.dw * v->x.pixel, n) * vf_load(w);
            }
        }
        store(r, 0, c, n, acc);
    }
}

static void run_row(const struct job *j, size_t n, size_t oy)
{
    const struct krn_conv *v = &j->c;
    void (*runner)(const struct run *) = runner_of(&v->win);
    ptrdiff_t iy = (ptrdiff_t)(oy * v->win.sh) - v->win.top;
    struct krn_range ky = krn_taps(iy, v->win.kh, v->win.dh, v->x.h);
    const float *image = (const float *)j->call->in[0] + n * v->x.batch;
    size_t row_first = (n * v->y.h + oy) * v->y.w;
    struct run r = {.j = j,
                    .w = (const float *)j->call->packed + ky.begin * v->win.kw * padded_channels(v),
                    .ky = ky};

    for (size_t ox = 0; ox < v->y.w;) {
        ptrdiff_t ix = (ptrdiff_t)(ox * v->win.sw) - v->win.left;
        struct krn_range kx = krn_taps(ix, v->win.kw, v->win.dw, v->x.w);
        size_t last = (size_t)(ix + (ptrdiff_t)((BLOCK - 1) * v->win.sw)) +
                      (v->win.kw - 1) * v->win.dw; /* column of the block; ix >= 0 when used */
        size_t at_y = ky.begin < ky.end ? (size_t)(iy + (ptrdiff_t)(ky.begin * v->win.dh)) : 0;

        r.first = row_first + ox;
        r.y = (float *)j->call->out[0] + r.first * v->y.pixel;
        r.x = image + at_y * v->x.row;
        if (ix >= 0 && ox + BLOCK <= v->y.w && last < v->x.w) {
            r.x += (size_t)ix * v->x.pixel;
            runner(&r);
            ox += BLOCK;
            continue;
        }
        if (kx.begin < kx.end) {
            r.x += (size_t)(ix + (ptrdiff_t)(kx.begin * v->win.dw)) * v->x.pixel;
        }
        run_pixel(&r, kx);
        ox++;
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range rows = krn_share(j->c.y.n * j->c.y.h, 1, part, j->parts);

    for (size_t row = rows.begin; row < rows.end; row++) {
        run_row(j, row / j->c.y.h, row % j->c.y.h);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {
        .call = call, .epilogue = krn_epilogue_of(call), .parts = base_max(call->width, 1u)};

    if (shape_of(call->model, call->op, &j.c)) {
        krn_parallel(call->pool, j.parts, part_run, &j);
    }
}

const struct krn_variant KRN_ISA_FN(krn_conv_f32_nhwc_dw) = {
    .name = "conv_f32_nhwc_dw__" KRN_ISA_TEXT,
    .kind = MDL_OP_CONV,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .packed_bytes = packed_bytes,
    .pack = pack,
    .run = run,
};
