/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pools of bytes, channels side by side. Work is shared by output rows, or by
 * channels where there are fewer rows than members (global pools).
 */
#include "base.h"
#include "kernels/pool_common.h"
#include "kernels/i8/quant_epilogue.h"

#define BYTES (4u * KRN_VL) /* of one vector */
#define LANES KRN_QUANT_LANES

typedef uint8_t vb __attribute__((vector_size(4 * KRN_VL)));
typedef int8_t vbs __attribute__((vector_size(4 * KRN_VL)));

static bool pool_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *p)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    return krn_is_byte(x->dtype) && krn_is_byte(y->dtype) && krn_pool_shape_of(m, op, p) &&
           krn_img_flat(&p->y) &&
           (p->max ? x->dtype == y->dtype && !op->quant : op->quant != NULL) &&
           op->act <= (p->max ? MDL_ACT_NONE : MDL_ACT_CLIP) && op->residual == MDL_RESIDUAL_NONE;
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct krn_pool p;

    return pool_of(m, op, &p);
}

struct job {
    const struct krn_call *call;
    struct krn_pool p;
    bool is_signed;
    struct krn_quant_epilogue e;
    size_t parts;
};

struct window {
    const uint8_t *x; /* first tap that exists */
    size_t rows, columns;
    size_t row, column; /* steps */
    size_t count;       /* divisor */
};

KRN_INLINE vb vb_max(vb a, vb b, bool is_signed)
{
#if KRN_VL == 16
    return is_signed ? (vb)_mm512_max_epi8((__m512i)a, (__m512i)b)
                     : (vb)_mm512_max_epu8((__m512i)a, (__m512i)b);
#elif KRN_VL == 8
    return is_signed ? (vb)_mm256_max_epi8((__m256i)a, (__m256i)b)
                     : (vb)_mm256_max_epu8((__m256i)a, (__m256i)b);
#else
    vb mask = is_signed ? (vb)((vbs)a > (vbs)b) : (vb)(a > b);

    return (a & mask) | (b & ~mask);
#endif
}

/* @n <= BYTES channels; whole vectors if @n is a constant */
KRN_INLINE void max_vector(const struct window *w, uint8_t *y, size_t n, bool is_signed)
{
    vb acc = (vb){0} + (uint8_t)(is_signed ? 0x80 : 0), v = {0};

    for (size_t r = 0; r < w->rows; r++) {
        const uint8_t *x = w->x + r * w->row;

        for (size_t k = 0; k < w->columns; k++, x += w->column) {
            memcpy(&v, x, n);
            acc = vb_max(acc, v, is_signed);
        }
    }
    memcpy(y, &acc, n);
}

static void max_channels(const struct window *w, uint8_t *y, size_t channels, bool is_signed)
{
    struct window at = *w;
    size_t c = 0;

    for (; c + BYTES <= channels; c += BYTES, at.x += BYTES) {
        max_vector(&at, y + c, BYTES, is_signed);
    }
    if (c < channels) {
        max_vector(&at, y + c, channels - c, is_signed);
    }
}

static void sum_rest(const struct window *w, size_t n, bool is_signed, vi acc[2])
{
    uint8_t in[LANES] = {0};

    for (size_t r = 0; r < w->rows; r++) {
        const uint8_t *x = w->x + r * w->row;

        for (size_t k = 0; k < w->columns; k++, x += w->column) {
            vi v[2];

            memcpy(in, x, n);
            vq_load2(in, is_signed, &v[0], &v[1]);
            acc[0] += v[0];
            acc[1] += v[1];
        }
    }
}

static void sum_full(const struct window *w, bool is_signed, vi acc[2])
{
    for (size_t r = 0; r < w->rows; r++) {
        const uint8_t *x = w->x + r * w->row;

        for (size_t k = 0; k < w->columns; k++, x += w->column) {
            vi v[2];

            vq_load2(x, is_signed, &v[0], &v[1]);
            acc[0] += v[0];
            acc[1] += v[1];
        }
    }
}

static void avg_channels(const struct job *j, const struct window *w, uint8_t *y, size_t channels)
{
    const struct mdl_quant *q = j->call->op->quant;
    int32_t zeros = (int32_t)(w->rows * w->columns) * q->x_zero;
    vf factor = vf_set(w->count ? q->x_scale / (float)w->count : 0.0f);
    struct window at = *w;

    for (size_t c = 0; c < channels; c += LANES, at.x += LANES) {
        size_t n = base_min(channels - c, (size_t)LANES);
        vi acc[2] = {vi_set(0), vi_set(0)}, out[2];
        uint8_t bytes[LANES];

        if (n == LANES) {
            sum_full(&at, j->is_signed, acc);
        } else {
            sum_rest(&at, n, j->is_signed, acc);
        }
        for (size_t v = 0; v < 2; v++) {
            vf t = vi_to_vf(acc[v] - zeros) * factor;

            out[v] =
                vq_round(vf_min(vf_set(j->e.high), vf_max(vf_set(j->e.low), t)), vi_set(q->y_zero));
        }
        vq_store2(bytes, out[0], out[1]);
        memcpy(y + c, bytes, n);
    }
}

static void pool_pixel(const struct job *j, size_t n, size_t oy, size_t ox, struct krn_range c)
{
    const struct krn_pool *p = &j->p;
    ptrdiff_t iy = (ptrdiff_t)(oy * p->win.sh) - p->win.top;
    ptrdiff_t ix = (ptrdiff_t)(ox * p->win.sw) - p->win.left;
    struct krn_range ky = krn_taps(iy, p->win.kh, p->win.dh, p->x.h);
    struct krn_range kx = krn_taps(ix, p->win.kw, p->win.dw, p->x.w);
    uint8_t *y =
        (uint8_t *)j->call->out[0] + ((n * p->y.h + oy) * p->y.w + ox) * p->y.pixel + c.begin;
    struct window w = {.x = j->call->in[0],
                       .rows = ky.end - ky.begin,
                       .columns = kx.end - kx.begin,
                       .row = p->win.dh * p->x.row,
                       .column = p->win.dw * p->x.pixel};

    w.count = w.rows * w.columns;
    if (w.count != 0) {
        w.x += n * p->x.batch + (size_t)(iy + (ptrdiff_t)(ky.begin * p->win.dh)) * p->x.row +
               (size_t)(ix + (ptrdiff_t)(kx.begin * p->win.dw)) * p->x.pixel + c.begin;
    } else {
        w.rows = 0;
    }
    if (p->max) {
        max_channels(&w, y, c.end - c.begin, j->is_signed);
        return;
    }
    if (p->fixed) {
        w.count = krn_pool_within(oy * p->win.sh, p->win.kh, p->win.dh, p->extent_h) *
                  krn_pool_within(ox * p->win.sw, p->win.kw, p->win.dw, p->extent_w);
    }
    avg_channels(j, &w, y, c.end - c.begin);
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_pool *p = &j->p;
    struct krn_range rows = {0, p->y.n * p->y.h}, c = {0, p->y.c};

    if (rows.end >= j->parts) {
        rows = krn_share(rows.end, 1, part, j->parts);
    } else {
        c = krn_share(c.end, BYTES, part, j->parts);
    }
    for (size_t r = rows.begin; r < rows.end && c.begin < c.end; r++) {
        for (size_t ox = 0; ox < p->y.w; ox++) {
            pool_pixel(j, r / p->y.h, r % p->y.h, ox, c);
        }
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (!pool_of(call->model, call->op, &j.p)) {
        return;
    }
    j.is_signed = call->model->tensors[call->op->in[0]].dtype == MDL_I8;
    if (!j.p.max) {
        krn_quant_bounds(call->model, call->op, &j.e);
    }
    krn_parallel(call->pool, j.parts, part_run, &j);
}

const struct krn_variant KRN_ISA_FN(krn_max_pool_i8_nhwc) = {
    .name = "max_pool_i8_nhwc__" KRN_ISA_TEXT,
    .kind = MDL_OP_MAX_POOL,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .run = run,
};

const struct krn_variant KRN_ISA_FN(krn_avg_pool_i8_nhwc) = {
    .name = "avg_pool_i8_nhwc__" KRN_ISA_TEXT,
    .kind = MDL_OP_AVG_POOL,
    .needs = KRN_ISA_NEEDS,
    .supports = supports,
    .run = run,
};
