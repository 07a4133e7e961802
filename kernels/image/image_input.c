/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/image/image_input.h"

#include "base/base.h"
#include "kernels/image/preprocess.h"

/* The tensor that an image is converted to. */
static size_t target(const struct mdl_model *m)
{
    size_t entry = krn_image_entry(m);

    return entry != MDL_NONE ? m->ops[entry].out[0] : m->inputs[0].tensor;
}

static size_t readers_of(const struct mdl_model *m, size_t storage)
{
    size_t readers = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        for (size_t k = 0; k <= MDL_OP_IN_MAX; k++) {
            size_t t = k < MDL_OP_IN_MAX ? m->ops[i].in[k] : m->ops[i].residual_in;

            readers += t != MDL_NONE && m->tensors[t].storage == storage;
        }
    }
    for (size_t i = 0; i < m->output_count; i++) {
        readers += m->tensors[m->outputs[i].tensor].storage == storage;
    }
    return readers;
}

/* Return: whether @x has the elements of tensor @t, where @map gives t's dims for [N][C][H][W]. */
static bool same_elements(const struct mdl_tensor *x, const struct mdl_tensor *t,
                          const size_t map[4])
{
    bool same = x->storage == t->storage && x->offset == t->offset && x->dtype == t->dtype &&
                x->rank == 4 && t->rank == 4;

    for (size_t d = 0; same && d < 4; d++) {
        same = x->dim[d] == t->dim[map[d]] && (x->dim[d] == 1 || x->stride[d] == t->stride[map[d]]);
    }
    return same;
}

size_t krn_image_reader(const struct mdl_model *m)
{
    static const size_t nchw[4] = {0, 1, 2, 3}, nhwc[4] = {0, 3, 1, 2};
    size_t entry = krn_image_entry(m), reader = entry == MDL_NONE ? 0 : entry + 1;

    if (m->input_count == 0 || reader >= m->op_count || m->ops[reader].in[0] == MDL_NONE) {
        return MDL_NONE;
    }
    const struct mdl_tensor *t = &m->tensors[target(m)];

    return same_elements(&m->tensors[m->ops[reader].in[0]], t, m->preproc.nhwc ? nhwc : nchw) &&
                   readers_of(m, t->storage) == 1 && krn_preprocess_ok(&m->preproc, t)
               ? reader
               : MDL_NONE;
}

bool krn_image_is_plain(const struct mdl_model *m, const struct krn_image *img)
{
    return krn_preprocess_is_plain(&m->preproc, &m->tensors[target(m)], img);
}

void krn_image_convert(const struct mdl_model *m, const struct krn_mem *mem,
                       const struct krn_exec *exec)
{
    uint64_t began_ns = mem->image_ns ? base_now_ns() : 0;
    size_t tensor = target(m);

    krn_preprocess(mem->image, &m->preproc, &m->tensors[tensor], krn_tensor_ptr(m, tensor, mem),
                   exec);
    if (mem->image_ns) {
        *mem->image_ns += base_now_ns() - began_ns;
    }
}
