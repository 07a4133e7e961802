/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Max and average pools of bytes, vectors of adjacent channels. A team shares output rows, or
 * channels if there are fewer rows than members (global pools).
 */
#include "base/base.h"
#include "kernels/common/planned.h"
#include "kernels/common/pool_common.h"
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

KRN_SUPPORTS_BY(struct krn_pool, pool_of)

struct job {
    const struct krn_call *call;
    struct krn_pool p;
    bool is_signed;
    struct krn_quant_epilogue e;
    size_t parts;
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
KRN_INLINE void max_vector(const struct krn_pool_window *w, const uint8_t *x, uint8_t *y, size_t n,
                           bool is_signed)
{
    vb acc = (vb){0} + (uint8_t)(is_signed ? 0x80 : 0), v = {0};

    for (size_t r = 0; r < w->rows; r++, x += w->row) {
        const uint8_t *at = x;

        for (size_t k = 0; k < w->columns; k++, at += w->column) {
            memcpy(&v, at, n);
            acc = vb_max(acc, v, is_signed);
        }
    }
    memcpy(y, &acc, n);
}

static void max_channels(const struct krn_pool_window *w, const uint8_t *x, uint8_t *y,
                         size_t channels, bool is_signed)
{
    size_t c = 0;

    for (; c + BYTES <= channels; c += BYTES) {
        max_vector(w, x + c, y + c, BYTES, is_signed);
    }
    if (c < channels) {
        max_vector(w, x + c, y + c, channels - c, is_signed);
    }
}

static void sum_rest(const struct krn_pool_window *w, const uint8_t *x, size_t n, bool is_signed,
                     vi acc[2])
{
    uint8_t in[LANES] = {0};

    for (size_t r = 0; r < w->rows; r++, x += w->row) {
        const uint8_t *at = x;

        for (size_t k = 0; k < w->columns; k++, at += w->column) {
            vi v[2];

            memcpy(in, at, n);
            vq_load2(in, is_signed, &v[0], &v[1]);
            acc[0] += v[0];
            acc[1] += v[1];
        }
    }
}

static void sum_full(const struct krn_pool_window *w, const uint8_t *x, bool is_signed, vi acc[2])
{
    for (size_t r = 0; r < w->rows; r++, x += w->row) {
        const uint8_t *at = x;

        for (size_t k = 0; k < w->columns; k++, at += w->column) {
            vi v[2];

            vq_load2(at, is_signed, &v[0], &v[1]);
            acc[0] += v[0];
            acc[1] += v[1];
        }
    }
}

static void avg_channels(const struct job *j, const struct krn_pool_window *w, const uint8_t *x,
                         uint8_t *y, size_t channels)
{
    const struct mdl_quant *q = j->call->op->quant;
    int32_t zeros = (int32_t)(w->rows * w->columns) * q->x_zero;
    vf factor = vf_set(w->count ? q->x_scale / (float)w->count : 0.0f);

    for (size_t c = 0; c < channels; c += LANES) {
        size_t n = base_min(channels - c, (size_t)LANES);
        vi acc[2] = {vi_set(0), vi_set(0)}, out[2];
        uint8_t bytes[LANES];

        if (n == LANES) {
            sum_full(w, x + c, j->is_signed, acc);
        } else {
            sum_rest(w, x + c, n, j->is_signed, acc);
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
    struct krn_pool_window w = krn_pool_window_of(p, n, oy, ox);
    const uint8_t *x = (const uint8_t *)j->call->in[0] + w.x + c.begin;
    uint8_t *y =
        (uint8_t *)j->call->out[0] + ((n * p->y.h + oy) * p->y.w + ox) * p->y.pixel + c.begin;

    if (p->max) {
        max_channels(&w, x, y, c.end - c.begin, j->is_signed);
    } else {
        avg_channels(j, &w, x, y, c.end - c.begin);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_pool *p = &j->p;
    struct krn_pool_share s = krn_pool_share(p, BYTES, part, j->parts);

    for (size_t r = s.rows.begin; r < s.rows.end; r++) {
        for (size_t ox = 0; ox < p->y.w; ox++) {
            pool_pixel(j, r / p->y.h, r % p->y.h, ox, s.channels);
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

KRN_ISA_PRIMITIVE(max_pool_i8_nhwc, MDL_OP_MAX_POOL, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);

KRN_ISA_PRIMITIVE(avg_pool_i8_nhwc, MDL_OP_AVG_POOL, KRN_ISA_NEEDS, .supports = supports,
                  .run = run);
