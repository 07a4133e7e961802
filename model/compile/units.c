/* SPDX-License-Identifier: Apache-2.0 */
/* Units: one heavy operator each, with the light ones after it; light ones before the first heavy
 * one belong to the first unit. A model without heavy operators has one unit per op. */
#include "model/compile/passes.h"

static bool is_heavy(const struct mdl_op *op)
{
    return mdl_op_is((int)op->kind, MDL_OP_HEAVY);
}

/* Equations (1) and (2) of the Pipe-search paper: H W C R S K of the input's H, W and C for a
 * convolution (C of one group), H W C F for a product; a pool counts its input (section 2.1).
 * Operators that the paper does not name count 0. */
static double op_weight(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = op->in[0] == MDL_NONE ? NULL : &m->tensors[op->in[0]];
    double n = 1;

    switch (op->kind) {
    case MDL_OP_CONV:
    case MDL_OP_CONV_TRANSPOSE:
        for (size_t i = 0; i < x->rank; i++) {
            n *= (double)x->dim[i];
        }
        for (size_t i = 0; i < op->attr.conv.window.rank; i++) {
            n *= (double)op->attr.conv.window.kernel[i];
        }
        return n * (double)m->tensors[op->out[0]].dim[1] / (double)op->attr.conv.groups;
    case MDL_OP_GEMM:
    case MDL_OP_MATMUL:
    case MDL_OP_RECURRENT:
    case MDL_OP_ATTENTION:
        return op->macs;
    case MDL_OP_MAX_POOL:
    case MDL_OP_AVG_POOL:
        return (double)mdl_elements(x);
    default:
        return 0;
    }
}

/* Constant bytes that a heavy op reads. */
static size_t op_weight_bytes(const struct mdl_model *m, const struct mdl_op *op)
{
    size_t bytes = 0;

    for (size_t i = 1; i < MDL_OP_IN_MAX && is_heavy(op); i++) {
        if (op->in[i] != MDL_NONE) {
            const struct mdl_storage *s = &m->storages[m->tensors[op->in[i]].storage];

            bytes += s->home == MDL_HOME_CONST ? s->bytes : 0;
        }
    }
    return bytes + (op->scale ? op->channels * sizeof(float) : 0) +
           (op->shift ? op->channels * sizeof(float) : 0);
}

static size_t live_across(const struct mdl_model *m, size_t last_op)
{
    size_t bytes = 0;

    for (size_t i = 0; i < m->storage_count; i++) {
        const struct mdl_storage *s = &m->storages[i];

        if (s->home == MDL_HOME_ARENA && s->first_op <= last_op && s->last_op > last_op) {
            bytes += s->bytes;
        }
    }
    return bytes;
}

static void close_unit(struct mdl_model *m, struct mdl_unit *u, size_t last_op)
{
    u->last_op = last_op;
    if (u->heavy_op == MDL_NONE) {
        u->heavy_op = u->first_op;
    }
    for (size_t k = u->first_op; k <= last_op; k++) {
        u->weight += op_weight(m, &m->ops[k]);
        u->macs += m->ops[k].macs;
        u->weight_bytes += op_weight_bytes(m, &m->ops[k]);
    }
    if (u->weight == 0 && m->ops[u->heavy_op].out[0] != MDL_NONE) {
        /* planners divide by weights: a unit of light ops counts its output elements */
        u->weight = (double)base_max(mdl_elements(&m->tensors[m->ops[u->heavy_op].out[0]]), 1u);
    }
    u->name = m->ops[u->heavy_op].name;
    u->live_bytes = live_across(m, last_op);
    m->weight_bytes += u->weight_bytes;
}

void mdl_units(struct mdl_ir *ir)
{
    struct mdl_model *m = ir->model;
    bool any_heavy = false;
    struct mdl_unit *u = NULL;

    if (m->op_count == 0) {
        mdl_ir_refuse(ir, -EOPNOTSUPP,
                      "the model computes nothing: its outputs are inputs or constants");
    }
    m->units = mdl_pool_alloc(m->private->pool, m->op_count, sizeof(*m->units));
    if (!m->units) {
        mdl_ir_nomem(ir);
    }
    for (size_t k = 0; k < m->op_count; k++) {
        any_heavy |= is_heavy(&m->ops[k]);
    }
    for (size_t k = 0; k < m->op_count; k++) {
        bool heavy = is_heavy(&m->ops[k]);

        if (u && heavy && u->heavy_op == MDL_NONE) {
            u->heavy_op = k; /* light ops before the first heavy one */
            continue;
        }
        if (!u || heavy || !any_heavy) {
            if (u) {
                close_unit(m, u, k - 1);
            }
            u = &m->units[m->unit_count++];
            u->first_op = k;
            u->heavy_op = heavy ? k : MDL_NONE;
        }
    }
    close_unit(m, u, m->op_count - 1);
}
