/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/nchw.h"

#include "base/base.h"
#include "kernels/common/copy_any.h"
#include "kernels/common/nhwc.h"

size_t krn_nchw_bytes(const struct mdl_model *m, size_t t)
{
    const struct mdl_tensor *tensor = &m->tensors[t];

    return base_align_up(mdl_elements(tensor) * mdl_dtype_bytes(tensor->dtype), (size_t)64);
}

static bool reads(const struct mdl_model *m, const struct mdl_op *op, size_t from, size_t storage)
{
    for (size_t n = from; n <= MDL_OP_IN_MAX; n++) {
        size_t in = n < MDL_OP_IN_MAX ? op->in[n] : op->residual_in;

        if (in != MDL_NONE && m->tensors[in].storage == storage) {
            return true;
        }
    }
    return false;
}

bool krn_nchw_between(const struct mdl_model *m, size_t i)
{
    const struct mdl_op *a = &m->ops[i], *b = &a[1];

    if (i + 1 >= m->op_count || a->out[1] != MDL_NONE || b->in[0] != a->out[0]) {
        return false;
    }
    size_t at = m->tensors[a->out[0]].storage;
    const struct mdl_storage *s = &m->storages[at];

    if (s->home != MDL_HOME_ARENA || s->first_op != i || reads(m, b, 1, at)) {
        return false;
    }
    /* a FUSED pair may extend the storage's life past its last reader */
    for (size_t k = i + 2; s->last_op != i + 1 && k < m->op_count; k++) {
        if (reads(m, &m->ops[k], 0, at)) {
            return false;
        }
    }
    return true;
}

bool krn_nchw_may_stay(const struct mdl_model *m, size_t i)
{
    const struct mdl_tensor *t = &m->tensors[m->ops[i].out[0]];
    struct krn_img img;

    return krn_nchw_between(m, i) && t->offset == 0 && krn_img_of(t, &img) && krn_img_flat(&img) &&
           img.pixel == img.c;
}

static struct mdl_tensor nchw_of(const struct mdl_tensor *t)
{
    struct mdl_tensor nchw = *t;
    ptrdiff_t next = 1;

    for (size_t d = t->rank; d-- > 0;) {
        nchw.stride[d] = next;
        next *= (ptrdiff_t)t->dim[d];
    }
    return nchw;
}

void krn_nchw_to(const struct mdl_model *m, size_t t, const void *value, void *nchw,
                 const struct krn_exec *exec)
{
    const struct mdl_tensor *x = &m->tensors[t], y = nchw_of(x);

    (void)krn_copy_run(&(struct krn_copy){.y = &y, .x = x, .y_at = nchw, .x_at = value}, exec->pool,
                       exec->width);
}

void krn_nchw_from(const struct mdl_model *m, size_t t, const void *nchw, void *value,
                   const struct krn_exec *exec)
{
    const struct mdl_tensor *y = &m->tensors[t], x = nchw_of(y);

    (void)krn_copy_run(&(struct krn_copy){.y = y, .x = &x, .y_at = value, .x_at = nchw}, exec->pool,
                       exec->width);
}
