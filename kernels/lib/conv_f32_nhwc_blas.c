/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution over OpenBLAS: blocks of output pixels, each an im2row copy and one sgemm per group,
 * finished with the epilogue while the block is in cache. A 1x1 convolution of stride 1 multiplies
 * its input in place.
 */
#include <cblas.h>

#include "base/base.h"
#include "kernels/common/conv_common.h"
#include "kernels/common/planned.h"
#include "kernels/lib/blas.h"

#define BLOCK_BYTES (384u * 1024u) /* im2row rows and output of one block; fits L2 */
#define BLOCK_PIXELS_MIN 48u       /* below this, BLAS' packing of the weights becomes noticeable */

struct plan {
    struct krn_conv c;
    bool direct; /* rows of x are rows of the product */
    size_t pixels, block, k;
    size_t part_bytes;
};

static bool plan_of(const struct mdl_model *m, const struct mdl_op *op, struct plan *p)
{
    /* the product overwrites y before the epilogue reads the residual */
    if (!krn_conv_of(m, op, &p->c) || krn_epilogue_aliased(m, op)) {
        return false;
    }
    p->k = p->c.taps * p->c.cg;
    p->pixels = p->c.y.n * p->c.y.h * p->c.y.w;
    p->direct = krn_conv_is_pointwise(&p->c) && krn_img_flat(&p->c.x);
    p->block = BLOCK_BYTES / sizeof(float) / (p->k + p->c.og);
    p->block = base_max(p->block, BLOCK_PIXELS_MIN);
    p->block = base_min(p->block, p->pixels);
    p->part_bytes =
        p->direct ? 0 : base_align_up(p->block * p->k * sizeof(float), BASE_CACHE_LINE_BYTES);
    /* sgemm takes ints */
    return p->k <= INT32_MAX && p->c.x.pixel <= INT32_MAX && p->c.y.pixel <= INT32_MAX;
}

KRN_SUPPORTS_BY(struct plan, plan_of)

KRN_PACKED_BYTES_BY(struct plan, plan_of, sizeof(float) * p.c.groups * p.k * p.c.og)

/* [group][tap][c][o] */
KRN_PACK_BY(struct plan, plan_of,
            krn_conv_pack(m, op, &p.c,
                          &(struct krn_conv_order){p.k * p.c.og, 1, p.c.og, p.c.cg *p.c.og}, dst))

/* one row of the product's left side: the window of an output pixel, for one group */
static void im2row(const struct krn_conv *c, const float *x, size_t oy, size_t ox, float *row)
{
    ptrdiff_t iy = (ptrdiff_t)(oy * c->win.sh) - c->win.top;
    ptrdiff_t ix = (ptrdiff_t)(ox * c->win.sw) - c->win.left;
    struct krn_range ky = krn_taps(iy, c->win.kh, c->win.dh, c->x.h);
    struct krn_range kx = krn_taps(ix, c->win.kw, c->win.dw, c->x.w);
    size_t step = c->win.dw * c->x.pixel, line = c->win.kw * c->cg;

    for (size_t y = 0; y < c->win.kh; y++, row += line) {
        const float *src;

        if (y < ky.begin || y >= ky.end || kx.begin >= kx.end) {
            memset(row, 0, line * sizeof(float));
            continue;
        }
        src = x + (size_t)(iy + (ptrdiff_t)(y * c->win.dh)) * c->x.row +
              (size_t)(ix + (ptrdiff_t)(kx.begin * c->win.dw)) * c->x.pixel;
        memset(row, 0, kx.begin * c->cg * sizeof(float));
        if (step == c->cg) {
            memcpy(row + kx.begin * c->cg, src, (kx.end - kx.begin) * c->cg * sizeof(float));
        } else {
            for (size_t k = kx.begin; k < kx.end; k++, src += step) {
                memcpy(row + k * c->cg, src, c->cg * sizeof(float));
            }
        }
        memset(row + kx.end * c->cg, 0, (c->win.kw - kx.end) * c->cg * sizeof(float));
    }
}

struct job {
    const struct krn_call *call;
    struct plan p;
    struct krn_epilogue epilogue;
    size_t parts;
};

static void run_block(const struct job *j, size_t first, size_t pixels, size_t group, float *rows)
{
    const struct krn_conv *c = &j->p.c;
    const float *x = (const float *)j->call->in[0] + group * c->cg;
    const float *w = (const float *)j->call->packed + group * j->p.k * c->og;
    float *y = (float *)j->call->out[0] + first * c->y.pixel + group * c->og;
    const float *a = rows;
    size_t lda = j->p.k;

    if (j->p.direct) {
        a = x + first * c->x.pixel;
        lda = c->x.pixel;
    } else {
        size_t ox = first % c->y.w, oy = first / c->y.w % c->y.h, n = first / c->y.w / c->y.h;

        for (size_t i = 0; i < pixels; i++) {
            im2row(c, x + n * c->x.batch, oy, ox, rows + i * j->p.k);
            if (++ox == c->y.w) {
                ox = 0;
                if (++oy == c->y.h) {
                    oy = 0;
                    n++;
                }
            }
        }
    }
    krn_blas_take();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)pixels, (int)c->og, (int)j->p.k,
                1.0f, a, (int)lda, w, (int)c->og, 0.0f, y, (int)c->y.pixel);
    krn_blas_give();
    if (!krn_epilogue_empty(&j->epilogue)) {
        krn_epilogue_run(&j->epilogue, y, c->y.pixel, first, pixels, group * c->og, c->og);
    }
}

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range all = krn_share_run(j->p.pixels, 8, part, j->parts);
    float *rows = (float *)(j->call->scratch + part * j->p.part_bytes);

    for (size_t first = all.begin; first < all.end;) {
        size_t left = all.end - first, blocks = (left + j->p.block - 1) / j->p.block;
        size_t now = (left + blocks - 1) / blocks;

        for (size_t group = 0; group < j->p.c.groups; group++) {
            run_block(j, first, now, group, rows);
        }
        first += now;
    }
}

KRN_RUN_PARTS_BY(struct job, plan_of, p, part_run, .epilogue = krn_epilogue_of(call))

KRN_SCRATCH_BYTES_BY(struct plan, plan_of, p.part_bytes)

KRN_PRIMITIVE(conv_f32_nhwc__blas, MDL_OP_CONV, .supports = supports, .packed_bytes = packed_bytes,
              .pack = pack, .prepare = krn_blas_prepare, .release = krn_blas_release,
              .scratch_bytes = scratch_bytes, .run = run);
