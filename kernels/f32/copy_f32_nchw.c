/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout conversions from and to row-major tensors, such as a model's inputs and outputs: if the
 * other side stays NCHW, nothing changes, and bytes are copied as they are.
 */

#include "base/base.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/nhwc.h"
#include "kernels/common/parallel.h"
#include "kernels/common/planned.h"
#include "kernels/primitive.h"

/* @planes is an NCHW image, @other lies row-major */
static bool supports(const struct mdl_op *op, const struct mdl_tensor *planes,
                     const struct mdl_tensor *other)
{
    struct krn_img img;

    return krn_op_is_plain(op) && krn_img_of(planes, &img) && planes->rank == other->rank &&
           memcmp(planes->dim, other->dim, planes->rank * sizeof(planes->dim[0])) == 0 &&
           other->dtype == MDL_F32 && mdl_is_dense(other);
}

static bool to_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return supports(op, &m->tensors[op->out[0]], &m->tensors[op->in[0]]);
}

static bool from_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return supports(op, &m->tensors[op->in[0]], &m->tensors[op->out[0]]);
}

struct job {
    uint8_t *y;
    const uint8_t *x;
    size_t bytes, parts;
};

static void part_run(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range r = krn_share(j->bytes, BASE_CACHE_LINE_BYTES, part, j->parts);

    memcpy(j->y + r.begin, j->x + r.begin, r.end - r.begin);
}

static void run(const struct krn_call *call)
{
    const struct mdl_tensor *t = &call->model->tensors[call->op->in[0]];
    struct job j = {.y = call->out[0],
                    .x = call->in[0],
                    .bytes = mdl_elements(t) * sizeof(float),
                    .parts = base_max(call->width, 1u)};

    krn_parallel(call->pool, j.parts, part_run, &j);
}

KRN_PRIMITIVE(copy_f32_to_nchw__any, MDL_OP_COPY, .nchw_out = true, .supports = to_supports,
              .run = run);

KRN_PRIMITIVE(copy_f32_from_nchw__any, MDL_OP_COPY, .nchw_in = true, .supports = from_supports,
              .run = run);
