/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/f32/input_rows.h"

#include <string.h>

#include "kernels/common/epilogue.h"
#include "kernels/common/layout.h"

bool krn_planes_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_planes *ret)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];

    if (!krn_op_is_plain(op) || x->dtype != MDL_F32 || x->rank != 4 || y->rank != 4 ||
        x->stride[3] != 1 || op[1].kind != MDL_OP_CONV || op[1].in[0] != op->out[0]) {
        return false;
    }
    for (size_t d = 0; d < 4; d++) {
        if (x->dim[d] != y->dim[d]) {
            return false;
        }
    }
    *ret = (struct krn_planes){.batch = x->stride[0], .channel = x->stride[1], .row = x->stride[2]};
    return true;
}

void krn_input_rows_init(struct krn_input_rows *r, const struct krn_call *call,
                         const struct krn_img *x, const struct krn_planes *planes)
{
    r->call = call;
    r->x = *x;
    r->planes = *planes;
    if (call->image) {
        krn_pixels_sink_init(&r->pixels, &call->model->preproc, MDL_F32, x->c, sizeof(float),
                             (ptrdiff_t)(x->c * sizeof(float)));
    }
}

void krn_input_row(const struct krn_input_rows *r, size_t n, size_t y, size_t pixels, float *dst)
{
    const struct krn_planes *s = &r->planes;
    const struct krn_img *x = &r->x;
    const float *src = (const float *)r->call->in[0] + n * x->batch + y * x->row;

    if (r->call->image) { /* every n is made from it */
        krn_pixels_copy_row(&r->pixels, dst, r->call->image, 0, (uint32_t)y, pixels);
    } else if (s->x) {
        ptrdiff_t at = (ptrdiff_t)n * s->batch + (ptrdiff_t)y * s->row;

        krn_transpose_run(&(struct krn_transpose){.y = (uint8_t *)dst,
                                                  .x = s->x + at * (ptrdiff_t)sizeof(float),
                                                  .y_row = (ptrdiff_t)x->c,
                                                  .x_column = s->channel,
                                                  .rows = pixels,
                                                  .columns = x->c});
    } else if (x->pixel == x->c) {
        memcpy(dst, src, pixels * x->c * sizeof(float));
    } else {
        for (size_t k = 0; k < pixels; k++, src += x->pixel, dst += x->c) {
            memcpy(dst, src, x->c * sizeof(float));
        }
    }
}
