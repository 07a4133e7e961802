/* SPDX-License-Identifier: Apache-2.0 */
/* The two ops of a pair, as krn_primitive.supports() sees them, and their tensors. */
#include <math.h>

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/check_values.h"
#include "tests/kernels/fused_pair.h"

static size_t out_of(size_t in, const struct fused_case *k)
{
    return (in + 2 * k->pad - k->k) / k->stride + 1;
}

static size_t add_copy(struct fused_pair *p, const struct fused_case *k)
{
    struct mdl_op *op = &p->o->op;

    op->kind = MDL_OP_COPY;
    op->in[0] =
        one_op_tensor(p->o, MDL_F32, MDL_HOME_INPUT, 4, (size_t[]){k->n, k->c, k->h, k->w}, NULL);
    op->out[0] = one_op_image(p->o, k->n, k->c, k->h, k->w, k->x_pixel ? k->c + k->x_pixel : 0);
    check_fill(p->o, op->in[0], 1.0f);
    p->ops[0] = *op;
    op->kind = MDL_OP_CONV;
    return op->out[0];
}

static size_t add_conv(struct fused_pair *p, size_t i, size_t x, const struct fused_case *k,
                       bool dw)
{
    const struct mdl_tensor *in = &p->o->tensors[x];
    struct mdl_op *op = &p->o->op;
    bool window = dw || k->planes || k->pool;
    size_t c = in->dim[1], o = dw ? c : k->o, side = window ? k->k : 1;
    size_t stride = window ? k->stride : 1, pad = window ? k->pad : 0;
    size_t h = window ? out_of(in->dim[2], k) : in->dim[2];
    size_t w = window ? out_of(in->dim[3], k) : in->dim[3];

    op->in[0] = x;
    op->in[1] = one_op_tensor(p->o, MDL_F32, MDL_HOME_CONST, 4,
                              (size_t[]){o, dw ? 1 : c, side, side}, NULL);
    op->out[0] = one_op_image(p->o, in->dim[0], o, h, w, i == 1 && k->y_pixel ? o + k->y_pixel : 0);
    op->attr.conv.groups = dw ? c : 1;
    op->attr.conv.window = (struct mdl_window){.rank = 2,
                                               .kernel = {side, side},
                                               .stride = {stride, stride},
                                               .dilation = {1, 1},
                                               .pad_begin = {pad, pad},
                                               .pad_end = {pad, pad}};
    check_fill(p->o, op->in[1], 0.5f);
    p->o->scale = p->o->shift = NULL;
    op->scale = op->shift = NULL;
    op->residual_in = MDL_NONE;
    check_epilogue(p->o, o, k->act[i], i == 1 ? k->residual : MDL_RESIDUAL_NONE);
    if (i == 1 && k->in_place) { /* check_epilogue() may have made it wider */
        const struct mdl_tensor *y = &p->o->tensors[op->out[0]];

        op->residual_in = one_op_tensor(p->o, MDL_F32, MDL_HOME_ARENA, 4, y->dim, y->stride);
        check_fill(p->o, op->residual_in, 1.0f);
    }
    p->scale[i] = p->o->scale;
    p->shift[i] = p->o->shift;
    p->ops[i] = *op;
    return op->out[0];
}

static void add_pool(struct fused_pair *p, size_t x, const struct fused_case *k)
{
    const struct mdl_tensor *in = &p->o->tensors[x];
    struct mdl_op *op = &p->o->op;
    size_t n = in->dim[0], c = in->dim[1];
    size_t h = (in->dim[2] + 2 * k->pool_pad - k->pool_k) / k->pool_stride + 1;
    size_t w = (in->dim[3] + 2 * k->pool_pad - k->pool_k) / k->pool_stride + 1;

    *op = (struct mdl_op){.kind = MDL_OP_MAX_POOL, .residual_in = MDL_NONE};
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        op->in[i] = i ? MDL_NONE : x;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        op->out[i] = MDL_NONE;
    }
    op->out[0] = one_op_image(p->o, n, c, h, w, k->y_pixel ? c + k->y_pixel : 0);
    op->attr.pool.window = (struct mdl_window){.rank = 2,
                                               .kernel = {k->pool_k, k->pool_k},
                                               .stride = {k->pool_stride, k->pool_stride},
                                               .dilation = {1, 1},
                                               .pad_begin = {k->pool_pad, k->pool_pad},
                                               .pad_end = {k->pool_pad, k->pool_pad}};
    op->attr.pool.pad_end_model[0] = op->attr.pool.pad_end_model[1] = k->pool_pad;
    p->ops[1] = *op;
}

void fused_pair_init(struct fused_pair *p, const struct fused_case *k)
{
    size_t x, between;

    *p = (struct fused_pair){.o = one_op_new(MDL_OP_CONV)};
    if (k->planes) {
        add_conv(p, 1, add_copy(p, k), k, false);
    } else {
        x = one_op_image_apart(p->o, k->n, k->c, k->h, k->w, k->x_pixel ? k->c + k->x_pixel : 0,
                               k->x_row);
        check_fill(p->o, x, 1.0f);
        between = add_conv(p, 0, x, k, k->dw_first);
        if (k->pool) {
            float *pixels = (float *)(void *)p->o->buffers[x].data;

            pixels[(size_t)p->o->tensors[x].stride[2] * (k->h / 2)] = NAN; /* which stays */
            add_pool(p, between, k);
        } else {
            add_conv(p, 1, between, k, !k->dw_first);
        }
    }
    p->o->m.ops = p->ops;
    p->o->m.op_count = 2;
    snprintf(p->o->name, sizeof(p->o->name),
             "%s first: %zux%zux%zux%zu -> %zu, %zux%zu/%zu pad %zu pixels %zu,%zu rows %zu act "
             "%d,%d res %d in place %d pool %zu/%zu pad %zu",
             k->planes     ? "planes"
             : k->pool     ? "before pooling"
             : k->dw_first ? "depthwise"
                           : "1x1",
             k->n, k->c, k->h, k->w, k->o, k->k, k->k, k->stride, k->pad, k->x_pixel, k->y_pixel,
             k->x_row, (int)k->act[0], (int)k->act[1], (int)k->residual, k->in_place, k->pool_k,
             k->pool_stride, k->pool_pad);
}

void fused_pair_deinit(struct fused_pair *p)
{
    for (size_t i = 0; i < 2; i++) {
        free(p->scale[i]);
        free(p->shift[i]);
    }
    p->o->scale = p->o->shift = NULL;
    one_op_free(p->o);
}
