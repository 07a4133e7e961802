/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model, through the compiler: what it accepts must be sound (checked below), since
 * kernels trust it. Seeds: models given as arguments, and a small one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/compile/compile.h"
#include "model/onnx/onnx.h"
#include "tests/fuzz/replay.h"
#include "tests/unit/model/onnx_bytes.h"

static uint64_t sum; /* of what is only read */

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

/* Every element of the tensor is inside its storage. */
static void check_tensor(const struct mdl_model *m, const struct mdl_tensor *t)
{
    const struct mdl_storage *s;
    ptrdiff_t low = 0, high = 0;
    size_t size = mdl_dtype_bytes(t->dtype), n = mdl_elements(t);

    must(t->storage < m->storage_count && t->rank <= MDL_RANK_MAX && t->name);
    s = &m->storages[t->storage];
    if (n == 0) {
        return;
    }
    for (size_t i = 0; i < t->rank; i++) {
        ptrdiff_t reach = (ptrdiff_t)(t->dim[i] - 1) * t->stride[i];

        *(reach < 0 ? &low : &high) += reach;
    }
    must((ptrdiff_t)t->offset + low * (ptrdiff_t)size >= 0);
    must(t->offset + ((size_t)high + 1) * size <= s->bytes);
    if (s->home == MDL_HOME_ARENA) {
        must(s->offset % 64 == 0 && s->offset + s->bytes <= m->arena_bytes);
    }
    if (s->home == MDL_HOME_CONST) {
        must(s->data != NULL);
    }
}

static bool in_type(int32_t zero, enum mdl_dtype t)
{
    return t == MDL_I8 ? zero >= INT8_MIN && zero <= INT8_MAX : zero >= 0 && zero <= UINT8_MAX;
}

/* What kernels read without looking: an entry for every channel, zero points of their types. */
static void check_quant(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_quant *q = op->quant;
    enum mdl_dtype x = m->tensors[op->in[0]].dtype, y = m->tensors[op->out[0]].dtype;
    enum mdl_dtype w = op->in[1] == MDL_NONE ? x : m->tensors[op->in[1]].dtype;

    must(x == MDL_U8 || x == MDL_I8);
    must(y == MDL_U8 || y == MDL_I8 || y == MDL_F32 || y == MDL_I32);
    must(in_type(q->x_zero, x) && (y == MDL_F32 || y == MDL_I32 || in_type(q->y_zero, y)));
    must(op->kind != MDL_OP_BINARY || in_type(q->b_zero, w));
    must(op->residual == MDL_RESIDUAL_NONE ||
         in_type(q->r_zero, m->tensors[op->residual_in].dtype));
    for (size_t i = 0; i < op->channels; i++) {
        sum += q->bias ? (uint64_t)q->bias[i] : 0;
        must(!q->w_zero || in_type(q->w_zero[i], w));
        must(!op->scale || isfinite(op->scale[i]));
    }
}

static void check_model(const struct mdl_model *m)
{
    size_t next = 0;

    must(m->op_count > 0 && m->unit_count > 0 && m->output_count > 0);
    for (size_t i = 0; i < m->op_count; i++) {
        const struct mdl_op *op = &m->ops[i];

        must(op->kind < MDL_OP_COUNT && op->name && op->act < MDL_ACT_COUNT);
        for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
            must(op->in[k] == MDL_NONE || op->in[k] < m->tensor_count);
            if (op->in[k] != MDL_NONE) {
                check_tensor(m, &m->tensors[op->in[k]]);
            }
        }
        for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
            must(op->out[k] == MDL_NONE || op->out[k] < m->tensor_count);
            if (op->out[k] != MDL_NONE) {
                check_tensor(m, &m->tensors[op->out[k]]);
                must(m->storages[m->tensors[op->out[k]].storage].home != MDL_HOME_CONST);
                must(m->storages[m->tensors[op->out[k]].storage].home != MDL_HOME_INPUT);
            }
        }
        if (op->residual != MDL_RESIDUAL_NONE) {
            must(op->residual_in < m->tensor_count);
            check_tensor(m, &m->tensors[op->residual_in]);
        }
        if (op->quant) {
            check_quant(m, op);
        }
    }
    for (size_t i = 0; i < m->unit_count; i++) { /* every op is in one unit */
        must(m->units[i].first_op == next && m->units[i].last_op >= next &&
             m->units[i].last_op < m->op_count);
        next = m->units[i].last_op + 1;
    }
    must(next == m->op_count);
    for (size_t i = 0; i < m->input_count + m->output_count; i++) {
        const struct mdl_io *io =
            i < m->input_count ? &m->inputs[i] : &m->outputs[i - m->input_count];
        const struct mdl_tensor *t;

        must(io->name && io->tensor < m->tensor_count);
        t = &m->tensors[io->tensor];
        check_tensor(m, t);
        must(mdl_is_dense(t) && io->bytes == mdl_elements(t) * mdl_dtype_bytes(t->dtype));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct mdl_load_options options = {
        .name = "fuzz", .weight_bytes_max = (size_t)1 << 30, .arena_bytes_max = (size_t)1 << 30};
    char error[MDL_ERROR_MAX];
    struct mdl_graph *g = NULL;
    struct mdl_model *m = NULL;

    if (mdl_onnx_read(data, bytes, NULL, error, &g) < 0) {
        return 0;
    }
    error[0] = '\0';
    options.no_fusion = bytes & 1;
    if (mdl_compile(g, &options, error, &m) == 0) {
        check_model(m);
        mdl_free(m);
    } else {
        must(error[0] != '\0' && memchr(error, '\0', sizeof(error)) != NULL);
    }
    mdl_graph_free(g);
    return 0;
}

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    struct pb m = pb_small_model();
    size_t n = index == 0 && m.bytes <= cap ? m.bytes : 0;

    memcpy(data, m.data, n);
    pb_free(&m);
    return n;
}
