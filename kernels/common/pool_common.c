/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/pool_common.h"

bool krn_pool_shape_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *p)
{
    const struct mdl_window *w = &op->attr.pool.window;
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (op->out[1] != MDL_NONE || !krn_img_any(x, &p->x) || !krn_img_any(y, &p->y) ||
        y->rank != x->rank || !krn_win_of(w, x->rank, &p->win) || p->x.n != p->y.n ||
        p->x.c != p->y.c) {
        return false;
    }
    p->max = op->kind == MDL_OP_MAX_POOL;
    p->fixed = !p->max && op->attr.pool.count_include_pad;
    p->extent_h = p->x.h + (size_t)p->win.top + (w->rank == 2 ? op->attr.pool.pad_end_model[0] : 0);
    p->extent_w = p->x.w + (size_t)p->win.left + op->attr.pool.pad_end_model[w->rank - 1];
    return true;
}

bool krn_pool_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *p)
{
    if (m->tensors[op->in[0]].dtype != MDL_F32 || m->tensors[op->out[0]].dtype != MDL_F32 ||
        !krn_pool_shape_of(m, op, p) || op->shift || op->scale ||
        !krn_epilogue_supports(m, op, &p->y) || krn_epilogue_aliased(m, op)) {
        return false;
    }
    p->epilogue = op->act != MDL_ACT_NONE || op->residual != MDL_RESIDUAL_NONE;
    return true;
}

bool krn_pool_mean_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_pool *p)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (op->attr.reduce.which != MDL_RED_MEAN || op->attr.reduce.axes[0] ||
        op->attr.reduce.axes[1] || x->rank < 3 || x->rank > 4 || y->rank != x->rank) {
        return false;
    }
    for (size_t d = 2; d < x->rank; d++) {
        if (!op->attr.reduce.axes[d] || y->dim[d] != 1) {
            return false;
        }
    }
    if (!krn_img_of(x, &p->x) || !krn_img_of(y, &p->y) || p->x.n != p->y.n || p->x.c != p->y.c ||
        op->shift || op->scale || !krn_epilogue_supports(m, op, &p->y) ||
        krn_epilogue_aliased(m, op)) {
        return false;
    }
    p->win = (struct krn_win){p->x.h, p->x.w, 1, 1, 1, 1, 0, 0};
    p->max = p->fixed = false;
    p->extent_h = p->x.h;
    p->extent_w = p->x.w;
    p->epilogue = op->act != MDL_ACT_NONE || op->residual != MDL_RESIDUAL_NONE;
    return true;
}

size_t krn_pool_within(size_t padded_first, size_t taps, size_t dilation, size_t extent)
{
    struct krn_range r = krn_taps((ptrdiff_t)padded_first, taps, dilation, extent);

    return r.end - r.begin;
}
