/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution over OpenBLAS on NCHW images, two ways. Results of a block are finished with the
 * epilogue while they are in cache.
 *
 * im2col: blocks of output pixels; the windows of a block are copied as columns, a row for every
 * channel and tap, and one sgemm per group multiplies the weights by them. A 1x1 convolution of
 * stride 1 multiplies the channels in place.
 *
 * kn2row (stride 1): a KxK convolution is the sum of K*K 1x1 convolutions of the image shifted by
 * each tap. The rows under a block of output rows are copied once, with their padding, so that a
 * shift by a tap is only another start address. Each sgemm adds to the previous sums: K*K columns
 * are never stored. The sums have the width of the padded rows; those past a row's end are dropped.
 * Source: A. Anderson, A. Vasudevan, C. Keane, D. Gregg, "Low-memory GEMM-based convolution
 * algorithms for deep neural networks", sections 3 and 4.
 *
 * A team shares pixels or rows, or output channels if there are few pixels.
 */
#include <cblas.h>

#include "base/base.h"
#include "kernels/common/conv_common.h"
#include "kernels/common/planned.h"
#include "kernels/lib/blas.h"

#define BLOCK_BYTES (384u * 1024u) /* operands and results of one block; fits L2 */
#define BLOCK_PIXELS_MIN 96u       /* below this, BLAS' packing of the weights becomes noticeable */
#define TERMS_MIN 16u              /* per sum; fewer are not worth a product */
#define CHANNELS_MIN 8u            /* kn2row: of a tap's sum */

struct plan {
    struct krn_conv c;
    bool rows;   /* kn2row: lines are output rows; else pixels */
    bool direct; /* channels of x are rows of the product */
    size_t x_plane, y_plane;
    size_t k;                          /* terms of a sum */
    size_t pitch;                      /* kn2row: elements of a padded row */
    size_t lines, block;               /* of one image; of those at most so many at a time */
    size_t line_pixels;                /* of y in one line */
    size_t copy_floats, result_floats; /* of one block; result: sums, or the residual */
};

static size_t aligned(size_t floats)
{
    return base_align_up(floats, BASE_CACHE_LINE_BYTES / sizeof(float));
}

static size_t blocks_of(const struct plan *p, size_t line_floats, size_t fixed_floats,
                        size_t lines_min)
{
    size_t room = BLOCK_BYTES / sizeof(float);
    size_t fit = room > fixed_floats ? (room - fixed_floats) / line_floats : 0;

    return base_min(base_max(fit, lines_min), p->lines);
}

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_conv *c = &p->c;

    *p = (struct plan){.rows = false};
    /* the product overwrites y before the epilogue reads the residual */
    if (!krn_conv_of(m, op, &p->c) || krn_epilogue_aliased(m, op)) {
        return false;
    }
    p->x_plane = c->x.h * c->x.w;
    p->y_plane = c->y.h * c->y.w;
    p->k = c->cg * c->taps;
    /* sgemm takes ints */
    return p->k <= INT32_MAX && p->x_plane <= INT32_MAX && p->y_plane <= INT32_MAX;
}

static bool im2col_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_conv *c = &p->c;

    if (!plan_of(m, op, p) || p->k < TERMS_MIN || c->og < 2) {
        return false;
    }
    p->direct = krn_conv_is_pointwise(c);
    p->lines = p->y_plane;
    p->line_pixels = 1;
    p->block = blocks_of(p, p->k + c->og, 0, BLOCK_PIXELS_MIN);
    p->copy_floats = p->direct ? 0 : aligned(p->k * p->block);
    p->result_floats = op->residual == MDL_RESIDUAL_NONE ? 0 : aligned(c->og * p->block);
    return true;
}

static bool kn2row_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    const struct krn_conv *c = &p->c;
    size_t more;

    if (!plan_of(m, op, p) || c->taps < 2 || c->win.sh != 1 || c->win.sw != 1 ||
        c->cg < CHANNELS_MIN) {
        return false;
    }
    p->rows = true;
    p->pitch = c->y.w + (c->win.kw - 1) * c->win.dw;
    more = (c->win.kh - 1) * c->win.dh;
    p->lines = c->y.h;
    p->line_pixels = c->y.w;
    p->block = blocks_of(p, (c->cg + c->og) * p->pitch, c->cg * more * p->pitch,
                         (BLOCK_PIXELS_MIN + p->pitch - 1) / p->pitch);
    p->copy_floats = aligned(c->cg * (p->block + more) * p->pitch);
    p->result_floats = aligned(c->og * p->block * p->pitch);
    return p->copy_floats <= INT32_MAX && p->result_floats <= INT32_MAX;
}

KRN_PACKED_BYTES_BY(struct plan, plan_of, sizeof(float) * p.c.y.c * p.k)

/* [o][c][tap] */
KRN_PACK_AS(im2col_pack, struct plan, plan_of,
            krn_conv_pack(m, op, &p.c, &(struct krn_conv_order){p.c.og * p.k, p.k, p.c.taps, 1},
                          dst))

/* [tap][o][c] */
KRN_PACK_AS(kn2row_pack, struct plan, plan_of,
            krn_conv_pack(m, op, &p.c,
                          &(struct krn_conv_order){p.c.og * p.c.cg, p.c.cg, 1, p.c.y.c *p.c.cg},
                          dst))

static size_t part_floats(const struct plan *p)
{
    return p->copy_floats + p->result_floats;
}

KRN_SUPPORTS_AS(im2col_supports, struct plan, im2col_of)
KRN_SUPPORTS_AS(kn2row_supports, struct plan, kn2row_of)
KRN_SCRATCH_BYTES_AS(im2col_scratch, struct plan, im2col_of, part_floats(&p) * sizeof(float))
KRN_SCRATCH_BYTES_AS(kn2row_scratch, struct plan, kn2row_of, part_floats(&p) * sizeof(float))

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_epilogue epilogue;
    size_t parts;
};

/* Some lines of one image, some output channels of one group. */
struct block {
    size_t image, first, lines;
    size_t group, o, channels;
    float *copy, *result; /* this part's scratch */
};

static const float *x_planes(const struct job *j, const struct block *b)
{
    const struct krn_conv *c = &j->p.c;

    return (const float *)j->call->in[0] + (b->image * c->x.c + b->group * c->cg) * j->p.x_plane;
}

/* its first pixel in its first channel */
static float *y_planes(const struct job *j, const struct block *b)
{
    const struct krn_conv *c = &j->p.c;

    return (float *)j->call->out[0] + (b->image * c->y.c + b->group * c->og + b->o) * j->p.y_plane +
           b->first * j->p.line_pixels;
}

/* What tap @kx reads for output columns @ox.. of one row: zero outside of the image. */
static void tap_row(const struct krn_conv *c, const float *row, size_t kx, struct krn_range ox,
                    float *out)
{
    ptrdiff_t ix = (ptrdiff_t)(ox.begin * c->win.sw + kx * c->win.dw) - c->win.left;
    struct krn_range in = krn_taps(ix, ox.end - ox.begin, c->win.sw, c->x.w);
    const float *x = row + ix + (ptrdiff_t)(in.begin * c->win.sw);

    memset(out, 0, in.begin * sizeof(*out));
    if (c->win.sw == 1) {
        memcpy(out + in.begin, x, (in.end - in.begin) * sizeof(*out));
    } else {
        for (size_t i = in.begin; i < in.end; i++, x += c->win.sw) {
            out[i] = *x;
        }
    }
    memset(out + in.end, 0, (ox.end - ox.begin - in.end) * sizeof(*out));
}

/* One row of the product's right side: what tap (@ky, @kx) of one channel reads for a block. */
static void column(const struct krn_conv *c, const float *plane, size_t ky, size_t kx,
                   const struct block *b, float *out)
{
    size_t oy = b->first / c->y.w, ox = b->first % c->y.w;

    for (size_t left = b->lines; left > 0; oy++, ox = 0) {
        size_t now = base_min(left, c->y.w - ox);
        ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh + ky * c->win.dh) - c->win.top;

        if (iy >= 0 && iy < (ptrdiff_t)c->x.h) {
            tap_row(c, plane + (size_t)iy * c->x.w, kx, (struct krn_range){ox, ox + now}, out);
        } else {
            memset(out, 0, now * sizeof(*out));
        }
        out += now;
        left -= now;
    }
}

static void finish(const struct job *j, const struct block *b, float *room)
{
    const struct plan *p = &j->p;

    if (krn_epilogue_empty(&j->epilogue)) {
        return;
    }
    krn_epilogue_planes_run(
        &j->epilogue,
        &(struct krn_epilogue_planes){.y = y_planes(j, b),
                                      .plane = p->y_plane,
                                      .first = b->image * p->y_plane + b->first * p->line_pixels,
                                      .pixels = b->lines * p->line_pixels,
                                      .channel = b->group * p->c.og + b->o,
                                      .channels = b->channels,
                                      .room = room});
}

static void im2col_block(const struct job *j, const struct block *b)
{
    const struct plan *p = &j->p;
    const struct krn_conv *c = &p->c;
    const float *x = x_planes(j, b), *columns = x + b->first;
    const float *w = (const float *)j->call->packed + (b->group * c->og + b->o) * p->k;
    size_t ld = p->x_plane;

    for (size_t k = 0; !p->direct && k < p->k; k++) {
        size_t tap = k % c->taps;

        column(c, x + k / c->taps * p->x_plane, tap / c->win.kw, tap % c->win.kw, b,
               b->copy + k * b->lines);
        columns = b->copy;
        ld = b->lines;
    }
    krn_blas_take();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->channels, (int)b->lines,
                (int)p->k, 1.0f, w, (int)p->k, columns, (int)ld, 0.0f, y_planes(j, b),
                (int)p->y_plane);
    krn_blas_give();
    finish(j, b, b->result);
}

/* The rows under a block, padded. Return: elements between channels. */
static size_t padded_rows(const struct job *j, const struct block *b)
{
    const struct krn_conv *c = &j->p.c;
    size_t rows = b->lines + (c->win.kh - 1) * c->win.dh, pitch = j->p.pitch;
    const float *x = x_planes(j, b);
    float *out = b->copy;

    for (size_t i = 0; i < c->cg; i++, x += j->p.x_plane) {
        for (size_t r = 0; r < rows; r++, out += pitch) {
            ptrdiff_t iy = (ptrdiff_t)(b->first + r) - c->win.top;

            if (iy >= 0 && iy < (ptrdiff_t)c->x.h) {
                tap_row(c, x + (size_t)iy * c->x.w, 0, (struct krn_range){0, pitch}, out);
            } else {
                memset(out, 0, pitch * sizeof(*out));
            }
        }
    }
    return rows * pitch;
}

static void kn2row_block(const struct job *j, const struct block *b)
{
    const struct plan *p = &j->p;
    const struct krn_conv *c = &p->c;
    size_t sums = b->lines * p->pitch, x_ld = padded_rows(j, b);
    size_t columns = sums - (c->win.kw - 1) * c->win.dw; /* the last row has nothing behind it */
    float *y = y_planes(j, b);

    for (size_t tap = 0; tap < c->taps; tap++) {
        size_t at = tap / c->win.kw * c->win.dh * p->pitch + tap % c->win.kw * c->win.dw;
        const float *w =
            (const float *)j->call->packed + (tap * c->y.c + b->group * c->og + b->o) * c->cg;

        krn_blas_take();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)b->channels, (int)columns,
                    (int)c->cg, 1.0f, w, (int)c->cg, b->copy + at, (int)x_ld, tap ? 1.0f : 0.0f,
                    b->result, (int)sums);
        krn_blas_give();
    }
    for (size_t o = 0; o < b->channels; o++) {
        for (size_t r = 0; r < b->lines; r++) {
            memcpy(y + o * p->y_plane + r * c->y.w, b->result + o * sums + r * p->pitch,
                   c->y.w * sizeof(*y));
        }
    }
    finish(j, b, b->result); /* the sums are of no more use */
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct plan *p = &j->p;
    struct krn_range all = {0, p->c.y.n * p->lines}, o = {0, p->c.og};
    struct block b = {.copy = (float *)j->call->scratch + part * part_floats(p)};

    b.result = b.copy + p->copy_floats;
    if (p->c.y.n * p->y_plane < BLOCK_PIXELS_MIN * j->parts) {
        o = krn_share_run(o.end, 4, part, j->parts);
    } else {
        all = krn_share_run(all.end, p->rows ? 1 : 8, part, j->parts);
    }
    b.o = o.begin;
    b.channels = o.end - o.begin;
    for (size_t at = all.begin; at < all.end && b.channels > 0; at += b.lines) {
        size_t left, blocks;

        b.image = at / p->lines;
        b.first = at % p->lines;
        left = base_min(all.end - at, p->lines - b.first);
        blocks = (left + p->block - 1) / p->block;
        b.lines = (left + blocks - 1) / blocks;
        for (b.group = 0; b.group < p->c.groups; b.group++) {
            (p->rows ? kn2row_block : im2col_block)(j, &b);
        }
    }
}

KRN_RUN_PARTS_AS(im2col_run, struct job, im2col_of, p, part_run, .epilogue = krn_epilogue_of(call))
KRN_RUN_PARTS_AS(kn2row_run, struct job, kn2row_of, p, part_run, .epilogue = krn_epilogue_of(call))

KRN_PRIMITIVE(conv_f32_nchw__blas, MDL_OP_CONV, .nchw_in = true, .nchw_out = true,
              .supports = im2col_supports, .packed_bytes = packed_bytes, .pack = im2col_pack,
              .prepare = krn_blas_prepare, .release = krn_blas_release,
              .scratch_bytes = im2col_scratch, .run = im2col_run);

KRN_PRIMITIVE(conv_f32_nchw_kn2row__blas, MDL_OP_CONV, .nchw_in = true, .nchw_out = true,
              .supports = kn2row_supports, .packed_bytes = packed_bytes, .pack = kn2row_pack,
              .prepare = krn_blas_prepare, .release = krn_blas_release,
              .scratch_bytes = kn2row_scratch, .run = kn2row_run);
