/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the finished representation to a struct mdl_model. Everything that is kept is copied
 * into the model's pool; only weights inside the file mapping stay in place. */
#include "base/base.h"
#include "base/shown_text.h"
#include "base/tensor_name.h"
#include "model/compile/passes.h"

struct emit {
    struct mdl_ir *ir;
    struct mdl_model *m;
    struct mdl_pool *pool; /* the model's */
};

static int emit_nomem(const struct emit *e)
{
    return mdl_ir_nomem(e->ir);
}

static int copy_constant(struct emit *e, const struct mdl_ir_storage *from, struct mdl_storage *to)
{
    if (from->in_file || from->bytes == 0) {
        return 0;
    }
    to->data = mdl_pool_memdup(e->pool, from->data, from->bytes);
    return to->data ? 0 : emit_nomem(e);
}

/* Constants are shared by their data: a weight used twice exists once. */
static size_t same_constant(const struct emit *e, size_t storage)
{
    const struct mdl_ir_storage *s = &e->ir->storages[storage];

    for (size_t i = 0; i < storage; i++) {
        const struct mdl_ir_storage *t = &e->ir->storages[i];

        if (t->home == MDL_HOME_CONST && t->final != MDL_NONE && t->data == s->data &&
            t->bytes == s->bytes) {
            return t->final;
        }
    }
    return MDL_NONE;
}

static int emit_storage(struct emit *e, size_t storage, size_t *ret)
{
    struct mdl_ir_storage *s = &e->ir->storages[storage];
    struct mdl_storage *to;

    if (s->final != MDL_NONE) {
        *ret = s->final;
        return 0;
    }
    if (s->home == MDL_HOME_CONST) {
        s->final = same_constant(e, storage);
        if (s->final != MDL_NONE) {
            *ret = s->final;
            return 0;
        }
    }
    to = &e->m->storages[e->m->storage_count];
    *to = (struct mdl_storage){
        .home = s->home,
        .bytes = s->bytes,
        .offset = s->offset,
        .index = s->index,
        .data = s->data,
        .first_op = s->first_op,
        .last_op = s->last_op,
    };
    *ret = s->final = e->m->storage_count++;
    return s->home == MDL_HOME_CONST ? copy_constant(e, s, to) : 0;
}

static int emit_tensor(struct emit *e, size_t v, size_t *ret)
{
    struct mdl_ir_value *x;
    struct mdl_tensor *t;
    size_t offset = 0, storage;
    int r;

    if (v == MDL_NONE) {
        *ret = MDL_NONE;
        return 0;
    }
    x = &e->ir->values[v];
    if (x->tensor != MDL_NONE) {
        *ret = x->tensor;
        return 0;
    }
    r = emit_storage(e, mdl_ir_root(e->ir, x->storage, &offset), &storage);
    if (r < 0) {
        return r;
    }
    t = &e->m->tensors[e->m->tensor_count];
    *t = (struct mdl_tensor){
        .name = mdl_pool_strndup(e->pool, x->name, shown_fit(x->name, MDL_NAME_MAX - 1)),
        .dtype = x->dtype,
        .storage = storage,
        .offset = x->offset + offset,
        .rank = x->rank,
    };
    if (!t->name) {
        return emit_nomem(e);
    }
    memcpy(t->dim, x->dim, sizeof(t->dim));
    memcpy(t->stride, x->stride, sizeof(t->stride));
    *ret = x->tensor = e->m->tensor_count++;
    return 0;
}

static int emit_op(struct emit *e, const struct mdl_ir_op *from)
{
    struct mdl_op *op = &e->m->ops[e->m->op_count];
    int r = 0;

    *op = from->op;
    op->kind = (enum mdl_op_kind)from->kind;
    for (size_t i = 0; r == 0 && i < MDL_OP_IN_MAX; i++) {
        r = emit_tensor(e, from->op.in[i], &op->in[i]);
    }
    for (size_t i = 0; r == 0 && i < MDL_OP_OUT_MAX; i++) {
        r = emit_tensor(e, from->op.out[i], &op->out[i]);
    }
    r = r < 0 ? r : emit_tensor(e, from->op.residual_in, &op->residual_in);
    if (r < 0 || !mdl_op_own(op, e->pool)) {
        return r < 0 ? r : emit_nomem(e);
    }
    e->m->op_count++;
    e->m->macs += op->macs;
    return 0;
}

static int emit_io(struct emit *e, const char *name, size_t v, size_t entry, struct mdl_io *io)
{
    int r = emit_tensor(e, v, &io->tensor);
    char shown[TENSOR_NAME_BYTES];

    if (r < 0) {
        return r;
    }
    io->name = mdl_pool_strdup(e->pool, tensor_name(name, shown));
    io->bytes = mdl_ir_bytes(&e->ir->values[v]);
    io->entry_op = entry;
    return io->name ? 0 : emit_nomem(e);
}

static int emit_all(struct emit *e)
{
    struct mdl_ir *ir = e->ir;
    struct mdl_model *m = e->m;
    int r = 0;

    for (size_t i = 0; i < ir->storage_count; i++) {
        ir->storages[i].final = MDL_NONE;
    }
    for (size_t i = 0; i < ir->g->input_count && r == 0; i++) {
        r = emit_io(e, ir->g->inputs[i].name, ir->inputs[i], mdl_ir_entry_op(ir, i), &m->inputs[i]);
        m->input_count += r == 0;
    }
    for (size_t i = 0; i < ir->run_count && r == 0; i++) {
        r = emit_op(e, &ir->run[i]);
    }
    for (size_t i = 0; i < ir->g->output_count && r == 0; i++) {
        r = emit_io(e, ir->g->outputs[i].name, ir->output_values[i], MDL_NONE, &m->outputs[i]);
        m->outputs[i].rows_output = ir->output_rows[i];
        m->outputs[i].rows_dim = ir->output_rows_dim[i];
        m->output_count += r == 0;
    }
    return r;
}

int mdl_emit(struct mdl_ir *ir, size_t arena_bytes, struct mdl_model **ret)
{
    mdl_automodel struct mdl_model *m = NULL;
    struct emit e = {.ir = ir};
    int r = mdl_model_new(0, &m);

    if (r < 0) {
        return mdl_ir_nomem(ir);
    }
    e.m = m;
    e.pool = m->private->pool;
    m->storages = mdl_pool_alloc(e.pool, ir->storage_count, sizeof(*m->storages));
    m->tensors = mdl_pool_alloc(e.pool, ir->value_count, sizeof(*m->tensors));
    m->ops = mdl_pool_alloc(e.pool, ir->run_count, sizeof(*m->ops));
    m->inputs = mdl_pool_alloc(e.pool, ir->g->input_count, sizeof(*m->inputs));
    m->outputs = mdl_pool_alloc(e.pool, ir->g->output_count, sizeof(*m->outputs));
    m->name = mdl_pool_strdup(e.pool, ir->options->name ? ir->options->name : ir->g->name);
    if (!m->storages || !m->tensors || !m->ops || !m->inputs || !m->outputs || !m->name) {
        return mdl_ir_nomem(ir);
    }
    r = emit_all(&e);
    if (r < 0) {
        return r;
    }
    m->arena_bytes = base_align_up(arena_bytes, 64);
    m->tensor_bytes = (size_t)ir->run_time_bytes;
    r = mdl_units(m, ir->error);
    if (r < 0) {
        return r;
    }
    *ret = base_take(m);
    return 0;
}
