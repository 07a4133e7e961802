/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/epilogue.h"

#include "base/base.h"
#include "kernels/common/layout.h"

bool krn_op_is_plain(const struct mdl_op *op)
{
    return op->act == MDL_ACT_NONE && op->residual == MDL_RESIDUAL_NONE && !op->scale && !op->shift;
}

bool krn_epilogue_supports(const struct mdl_model *m, const struct mdl_op *op,
                           const struct krn_img *y)
{
    struct krn_img r;

    if (op->act > MDL_ACT_SOFTPLUS || !krn_img_flat(y) || (op->shift && op->channels != y->c)) {
        return false;
    }
    if (op->residual == MDL_RESIDUAL_NONE) {
        return true;
    }
    return op->residual_in != MDL_NONE && m->tensors[op->residual_in].dtype == MDL_F32 &&
           krn_img_for(m, op, op->residual_in, &r) && krn_img_flat(&r) && krn_img_same(&r, y);
}

struct krn_epilogue krn_epilogue_without(const struct mdl_op *op)
{
    return (struct krn_epilogue){
        .shift = op->shift,
        .act = op->act,
        .residual = op->residual,
        .a = op->act_a,
        .b = op->act_b,
    };
}

struct krn_epilogue krn_epilogue_of(const struct krn_call *c)
{
    struct krn_epilogue e = krn_epilogue_without(c->op);
    struct krn_img r;

    if (e.residual != MDL_RESIDUAL_NONE && krn_img_for(c->model, c->op, c->op->residual_in, &r)) {
        e.res = c->residual;
        e.res_pixel = r.pixel;
    }
    return e;
}

bool krn_epilogue_empty(const struct krn_epilogue *e)
{
    return !e->shift && !e->res && e->act == MDL_ACT_NONE;
}

void krn_epilogue_run(const struct krn_epilogue *e, float *y, size_t y_pixel, size_t first,
                      size_t pixels, size_t channel, size_t channels)
{
    KRN_OF_CPU(krn_epilogue_run)(e, y, y_pixel, first, pixels, channel, channels);
}

void krn_epilogue_planes_run(const struct krn_epilogue *e, const struct krn_epilogue_planes *p)
{
    if (e->res) {
        krn_transpose_run(&(struct krn_transpose){
            .y = (uint8_t *)p->room,
            .x = (const uint8_t *)(e->res + p->first * e->res_pixel + p->channel),
            .y_row = (ptrdiff_t)p->pixels,
            .x_column = (ptrdiff_t)e->res_pixel,
            .rows = p->channels,
            .columns = p->pixels});
    }
    KRN_OF_CPU(krn_epilogue_planes_run)(e, p);
}
