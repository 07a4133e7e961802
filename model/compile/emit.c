/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the finished representation to a struct mdl_model. Everything that is kept is copied
 * into the model's pool; only weights inside the file mapping stay in place. */
#include "base/shown_text.h"
#include "base/tensor_name.h"
#include "model/compile/passes.h"

static void *keep(struct mdl_ir *ir, size_t count, size_t size)
{
    void *kept = mdl_pool_alloc(ir->model->private->pool, count, size);

    if (!kept) {
        mdl_ir_nomem(ir);
    }
    return kept;
}

/* The first @bytes of @text. */
static char *keep_text(struct mdl_ir *ir, const char *text, size_t bytes)
{
    return memcpy(keep(ir, bytes + 1, 1), text, bytes);
}

/* Constants are shared by their data: a weight used twice exists once. */
static size_t same_constant(const struct mdl_ir *ir, size_t storage)
{
    const struct mdl_ir_storage *s = &ir->storages[storage];

    for (size_t i = 0; i < storage; i++) {
        const struct mdl_ir_storage *t = &ir->storages[i];

        if (t->mem.home == MDL_HOME_CONST && t->final != MDL_NONE && t->mem.data == s->mem.data &&
            t->mem.bytes == s->mem.bytes) {
            return t->final;
        }
    }
    return MDL_NONE;
}

static size_t emit_storage(struct mdl_ir *ir, size_t storage)
{
    struct mdl_ir_storage *s = &ir->storages[storage];
    struct mdl_storage *to;

    if (s->final == MDL_NONE && s->mem.home == MDL_HOME_CONST) {
        s->final = same_constant(ir, storage);
    }
    if (s->final != MDL_NONE) {
        return s->final;
    }
    to = &ir->model->storages[ir->model->storage_count];
    *to = s->mem;
    if (s->mem.home == MDL_HOME_CONST && !s->in_file && s->mem.bytes) {
        to->data = memcpy(keep(ir, s->mem.bytes, 1), s->mem.data, s->mem.bytes);
    }
    return s->final = ir->model->storage_count++;
}

static size_t emit_tensor(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_value *x;
    struct mdl_tensor *t;
    size_t offset = 0, storage;

    if (v == MDL_NONE || ir->values[v].tensor != MDL_NONE) {
        return v == MDL_NONE ? MDL_NONE : ir->values[v].tensor;
    }
    x = &ir->values[v];
    storage = emit_storage(ir, mdl_ir_root(ir, x->storage, &offset));
    t = &ir->model->tensors[ir->model->tensor_count];
    *t = (struct mdl_tensor){
        .name = keep_text(ir, x->name, shown_fit(x->name, MDL_NAME_MAX - 1)),
        .dtype = x->dtype,
        .storage = storage,
        .offset = x->offset + offset,
        .rank = x->rank,
    };
    memcpy(t->dim, x->dim, sizeof(t->dim));
    memcpy(t->stride, x->stride, sizeof(t->stride));
    return x->tensor = ir->model->tensor_count++;
}

static void emit_op(struct mdl_ir *ir, const struct mdl_ir_op *from)
{
    struct mdl_op *op = &ir->model->ops[ir->model->op_count];

    *op = from->op;
    op->kind = (enum mdl_op_kind)from->kind;
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        op->in[i] = emit_tensor(ir, from->op.in[i]);
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        op->out[i] = emit_tensor(ir, from->op.out[i]);
    }
    op->residual_in = emit_tensor(ir, from->op.residual_in);
    if (!mdl_op_own(op, ir->model->private->pool)) {
        mdl_ir_nomem(ir);
    }
    ir->model->op_count++;
    ir->model->macs += op->macs;
}

static struct mdl_io emit_io(struct mdl_ir *ir, const char *name, size_t v)
{
    char shown[TENSOR_NAME_BYTES];
    struct mdl_io io = {.tensor = emit_tensor(ir, v), .entry_op = MDL_NONE};

    name = tensor_name(name, shown);
    io.name = keep_text(ir, name, strlen(name));
    io.bytes = mdl_ir_bytes(&ir->values[v]);
    return io;
}

static void emit_all(struct mdl_ir *ir)
{
    struct mdl_model *m = ir->model;

    for (size_t i = 0; i < ir->storage_count; i++) {
        ir->storages[i].final = MDL_NONE;
    }
    for (; m->input_count < ir->g->input_count; m->input_count++) {
        size_t i = m->input_count;

        m->inputs[i] = emit_io(ir, ir->g->inputs[i].name, ir->inputs[i]);
        m->inputs[i].entry_op = mdl_ir_entry_op(ir, i);
    }
    for (size_t i = 0; i < ir->run_count; i++) {
        emit_op(ir, &ir->run[i]);
    }
    for (; m->output_count < ir->g->output_count; m->output_count++) {
        size_t i = m->output_count;

        m->outputs[i] = emit_io(ir, ir->g->outputs[i].name, ir->output_values[i]);
        m->outputs[i].rows_output = ir->output_rows[i];
        m->outputs[i].rows_dim = ir->output_rows_dim[i];
    }
}

/* ---- units: one heavy operator each, with the light ones after it; light ones before the first
 * heavy one belong to the first unit. A model without heavy operators has one unit per op. ---- */

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

static void make_units(struct mdl_ir *ir)
{
    struct mdl_model *m = ir->model;
    bool any_heavy = false;
    struct mdl_unit *u = NULL;

    if (m->op_count == 0) {
        mdl_ir_refuse(ir, -EOPNOTSUPP,
                      "the model computes nothing: its outputs are inputs or constants");
    }
    m->units = keep(ir, m->op_count, sizeof(*m->units));
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

/* ---- the whole ---- */

void mdl_emit(struct mdl_ir *ir, size_t arena_bytes)
{
    const char *name = ir->options->name ? ir->options->name : ir->g->name;
    struct mdl_model *m;

    m = ir->model = mdl_model_new();
    if (!m) {
        mdl_ir_nomem(ir);
    }
    m->storages = keep(ir, ir->storage_count, sizeof(*m->storages));
    m->tensors = keep(ir, ir->value_count, sizeof(*m->tensors));
    m->ops = keep(ir, ir->run_count, sizeof(*m->ops));
    m->inputs = keep(ir, ir->g->input_count, sizeof(*m->inputs));
    m->outputs = keep(ir, ir->g->output_count, sizeof(*m->outputs));
    m->name = keep_text(ir, name, strlen(name));
    emit_all(ir);
    m->arena_bytes = base_align_up(arena_bytes, 64);
    m->tensor_bytes = (size_t)ir->run_time_bytes;
    make_units(ir);
}
