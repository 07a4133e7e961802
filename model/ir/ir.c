/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ir/ir.h"

#include <assert.h>

#include "base/leaves/load_work.h"

/* A few tenths of a second; nothing calls off a step once it has begun. */
#define FOLD_STEP_WORK ((double)(1u << 28))

void mdl_ir_begin(struct mdl_ir *ir, const struct mdl_gnode *n)
{
    ir->node = n;
    ir->node_name = n->name[0]                                    ? n->name
                    : n->output_count && n->outputs[0][0] != '\0' ? n->outputs[0]
                                                                  : n->op_type;
}

int mdl_ir_say(const struct mdl_ir *ir, int code, const char *format, ...)
{
    char text[MDL_ERROR_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return ir->node ? mdl_fail(ir->error, code, "node %s (%s): %s", ir->node_name,
                               ir->node->op_type, text)
                    : mdl_fail(ir->error, code, "%s", text);
}

void mdl_ir_leave(struct mdl_ir *ir, int code)
{
    ir->failure = code;
    longjmp(*ir->leave, 1);
}

void mdl_ir_nomem(struct mdl_ir *ir)
{
    mdl_ir_leave(ir, mdl_fail(ir->error, -ENOMEM, "out of memory while compiling the model"));
}

void mdl_ir_called_off(struct mdl_ir *ir)
{
    if (mdl_stopped()) {
        mdl_ir_leave(ir, mdl_fail(ir->error, -ECANCELED, "the load was called off"));
    }
}

void *mdl_ir_alloc(struct mdl_ir *ir, size_t count, size_t size)
{
    void *made = mdl_pool_alloc(ir->pool, count, size);

    if (!made) {
        mdl_ir_nomem(ir);
    }
    return made;
}

void *mdl_ir_memdup(struct mdl_ir *ir, const void *data, size_t bytes)
{
    void *made = mdl_ir_alloc(ir, bytes, 1);

    return bytes ? memcpy(made, data, bytes) : made;
}

void mdl_ir_grow(struct mdl_ir *ir, void **array, size_t *cap, size_t count, size_t size)
{
    if (!mdl_pool_grow(ir->pool, array, cap, count, size)) {
        mdl_ir_nomem(ir);
    }
}

/* A scalar that nothing is known of. */
static const struct mdl_ir_value blank = {
    .name = "",
    .input = MDL_NONE,
    .op = MDL_NONE,
    .rows = MDL_NONE,
    .least = MDL_NONE,
    .most = MDL_NONE,
    .storage = MDL_NONE,
    .concat = MDL_NONE,
    .channels_last = MDL_NONE,
    .tensor = MDL_NONE,
};

const struct mdl_ir_value *mdl_ir_at(const struct mdl_ir *ir, size_t v)
{
    return v == MDL_NONE ? &blank : &ir->values[v];
}

size_t mdl_ir_elements(const struct mdl_ir_value *v)
{
    size_t n = 1;

    for (size_t i = 0; i < v->rank; i++) {
        n *= v->dim[i];
    }
    return n;
}

size_t mdl_ir_bytes(const struct mdl_ir_value *v)
{
    return mdl_ir_elements(v) * mdl_dtype_bytes(v->dtype);
}

/* The product of the dims that are not 0 must fit too: strides are computed from them. */
static bool size_fits(enum mdl_dtype dtype, size_t rank, const size_t *dim, size_t max)
{
    size_t bytes = mdl_dtype_bytes(dtype);

    for (size_t i = 0; i < rank; i++) {
        if (!base_mul(bytes, dim[i] ? dim[i] : 1, &bytes) || bytes > max) {
            return false;
        }
    }
    return true;
}

size_t mdl_ir_value_new(struct mdl_ir *ir, enum mdl_dtype dtype, size_t rank, const size_t *dim)
{
    struct mdl_ir_value *v;

    if (rank > MDL_RANK_MAX) {
        mdl_ir_refuse(ir, -E2BIG, "rank %zu is more than %u", rank, MDL_RANK_MAX);
    }
    if (!size_fits(dtype, rank, dim, ir->value_bytes_max)) {
        mdl_ir_refuse(ir, -E2BIG, "a tensor is larger than %zu bytes", ir->value_bytes_max);
    }
    mdl_ir_grow(ir, (void **)&ir->values, &ir->value_cap, ir->value_count, sizeof(*ir->values));
    v = &ir->values[ir->value_count];
    *v = blank;
    v->dtype = dtype;
    v->rank = rank;
    for (size_t i = 0; i < rank; i++) {
        v->dim[i] = dim[i];
    }
    return ir->value_count++;
}

size_t mdl_ir_const_new(struct mdl_ir *ir, enum mdl_dtype dtype, size_t rank, const size_t *dim,
                        const void *data, bool in_file)
{
    size_t v = mdl_ir_value_new(ir, dtype, rank, dim);

    ir->values[v].data = data ? data : ""; /* never NULL, also for an empty tensor */
    ir->values[v].in_file = in_file;
    return v;
}

void *mdl_ir_fold_alloc(struct mdl_ir *ir, size_t bytes)
{
    if (bytes > ir->fold_bytes_left) {
        mdl_ir_refuse(
            ir, -E2BIG,
            "the constants computed at load are too large; fold them when the model is exported");
    }
    ir->fold_bytes_left -= bytes;
    return mdl_ir_alloc(ir, bytes, 1);
}

bool mdl_ir_fold_work(struct mdl_ir *ir, double elements)
{
    if (elements > base_min(ir->fold_work_left, FOLD_STEP_WORK)) {
        return false;
    }
    ir->fold_work_left -= elements;
    return true;
}

bool mdl_ir_is_const(const struct mdl_ir *ir, size_t v)
{
    return v != MDL_NONE && ir->values[v].data != NULL;
}

struct mdl_ir_op mdl_ir_op_make(const struct mdl_ir *ir, int kind)
{
    struct mdl_ir_op op = {.kind = kind};

    op.op.kind = kind < (int)MDL_OP_COUNT ? (enum mdl_op_kind)kind : MDL_OP_COPY;
    op.op.name = (char *)(uintptr_t)ir->node_name;
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        op.op.in[i] = MDL_NONE;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        op.op.out[i] = MDL_NONE;
    }
    op.op.residual_in = MDL_NONE;
    return op;
}

void mdl_ir_op_add(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    if (ir->op_count >= MDL_IR_OPS_MAX) {
        mdl_ir_refuse(ir, -E2BIG, "the model has more than %u operators", MDL_IR_OPS_MAX);
    }
    mdl_ir_grow(ir, (void **)&ir->ops, &ir->op_cap, ir->op_count, sizeof(*ir->ops));
    ir->ops[ir->op_count] = *op;
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        if (op->op.out[i] != MDL_NONE) {
            ir->values[op->op.out[i]].op = ir->op_count;
        }
    }
    ir->op_count++;
}

struct mdl_ir_op *mdl_ir_take_ops(struct mdl_ir *ir, size_t *ret_count)
{
    struct mdl_ir_op *ops = ir->ops;

    *ret_count = ir->op_count;
    for (size_t i = 0; i < ir->value_count; i++) {
        ir->values[i].op = MDL_NONE;
    }
    ir->ops = NULL; /* the pool owns both */
    ir->op_count = ir->op_cap = 0;
    return ops;
}

struct mdl_ir_op *mdl_ir_writer(const struct mdl_ir *ir, size_t v)
{
    size_t op = v == MDL_NONE ? MDL_NONE : ir->values[v].op;

    assert(op == MDL_NONE || op < ir->op_count);
    return op == MDL_NONE || ir->ops[op].dead ? NULL : &ir->ops[op];
}

size_t *mdl_ir_input(struct mdl_ir_op *op, size_t *at)
{
    while (*at < MDL_OP_IN_MAX + 1 + op->concat_count) {
        size_t i = (*at)++;
        size_t *v = i < MDL_OP_IN_MAX    ? &op->op.in[i]
                    : i == MDL_OP_IN_MAX ? &op->op.residual_in
                                         : &op->concat_in[i - MDL_OP_IN_MAX - 1];

        if (*v != MDL_NONE) {
            return v;
        }
    }
    return NULL;
}

size_t mdl_ir_reads(const struct mdl_ir_op *op, size_t *at)
{
    const size_t *v = mdl_ir_input((struct mdl_ir_op *)(uintptr_t)op, at);

    return v ? *v : MDL_NONE;
}

void mdl_ir_absorb(struct mdl_ir *ir, struct mdl_ir_op *into, size_t k)
{
    into->op.out[0] = ir->ops[k].op.out[0];
    ir->values[into->op.out[0]].op = (size_t)(into - ir->ops);
    ir->ops[k].dead = true;
}

void mdl_ir_count_uses(struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->value_count; i++) {
        ir->values[i].uses = 0;
    }
    for (size_t i = 0; i < ir->op_count; i++) {
        for (size_t at = 0, v;
             !ir->ops[i].dead && (v = mdl_ir_reads(&ir->ops[i], &at)) != MDL_NONE;) {
            ir->values[v].uses++;
        }
    }
    for (size_t i = 0; i < ir->g->output_count; i++) {
        ir->values[ir->outputs[i]].uses++;
    }
}

void mdl_ir_drop_dead(struct mdl_ir *ir)
{
    bool *live = mdl_ir_alloc(ir, ir->value_count, sizeof(*live));

    for (size_t i = 0; i < ir->g->output_count; i++) {
        live[ir->outputs[i]] = true;
    }
    for (size_t k = ir->op_count; k-- > 0;) {
        struct mdl_ir_op *op = &ir->ops[k];
        bool needed = false;

        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            needed |= op->op.out[i] != MDL_NONE && live[op->op.out[i]];
        }
        if (op->dead || !needed) {
            op->dead = true;
            continue;
        }
        for (size_t at = 0, v; (v = mdl_ir_reads(op, &at)) != MDL_NONE;) {
            live[v] = true;
        }
    }
}

bool mdl_ir_is_spatial(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t rank = mdl_op_is(op->kind, MDL_OP_SPATIAL) ? ir->values[op->op.in[0]].rank : 0;

    return rank >= 3 && rank <= 5;
}

bool mdl_ir_same_dims(const struct mdl_ir_value *a, const struct mdl_ir_value *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof(a->dim[0])) == 0;
}

/* ---- constants ---- */

int64_t mdl_const_int(const struct mdl_ir_value *v, size_t i)
{
    const unsigned char *p = (const unsigned char *)v->data + i * mdl_dtype_bytes(v->dtype);
    int64_t i64;
    int32_t i32;
    float f;

    switch (v->dtype) {
    case MDL_I64:
        memcpy(&i64, p, sizeof(i64));
        return i64;
    case MDL_I32:
        memcpy(&i32, p, sizeof(i32));
        return i32;
    case MDL_I8:
        return (int8_t)*p;
    case MDL_U8:
        return *p;
    case MDL_BOOL:
        return *p != 0;
    default:
        memcpy(&f, p, sizeof(f));
        /* saturate: a conversion out of range is undefined */
        return f != f ? 0 : f >= 0x1p63f ? INT64_MAX : f <= -0x1p63f ? INT64_MIN : (int64_t)f;
    }
}

double mdl_const_real(const struct mdl_ir_value *v, size_t i)
{
    float f;

    if (v->dtype != MDL_F32) {
        return (double)mdl_const_int(v, i);
    }
    memcpy(&f, (const unsigned char *)v->data + i * sizeof(f), sizeof(f));
    return f;
}

double mdl_const_channel(const struct mdl_ir_value *v, size_t c)
{
    return mdl_const_real(v, mdl_ir_elements(v) == 1 ? 0 : c);
}

void mdl_const_store(void *data, enum mdl_dtype dtype, size_t i, double real, int64_t integer)
{
    unsigned char *p = (unsigned char *)data + i * mdl_dtype_bytes(dtype);
    int32_t i32 = (int32_t)integer;
    float f = (float)real;

    switch (dtype) {
    case MDL_I64:
        memcpy(p, &integer, sizeof(integer));
        break;
    case MDL_I32:
        memcpy(p, &i32, sizeof(i32));
        break;
    case MDL_F32:
        memcpy(p, &f, sizeof(f));
        break;
    case MDL_BOOL:
        *p = integer != 0;
        break;
    default:
        *p = (unsigned char)integer;
        break;
    }
}

void *mdl_const_make(struct mdl_ir *ir, size_t v)
{
    void *data = mdl_ir_fold_alloc(ir, mdl_ir_bytes(&ir->values[v]));

    ir->values[v].data = data;
    ir->values[v].in_file = false;
    return data;
}

size_t mdl_const_settled(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_value *x = &ir->values[v];
    bool settled =
        !x->data && x->most != MDL_NONE &&
        memcmp(ir->values[x->least].data, ir->values[x->most].data, mdl_ir_bytes(x)) == 0;

    return settled ? x->least : v;
}

void mdl_const_move(size_t size, size_t rank, const size_t *dim, unsigned char *dst,
                    const ptrdiff_t *to, const unsigned char *src, const ptrdiff_t *from)
{
    size_t index[MDL_RANK_MAX] = {0}, count = 1;
    ptrdiff_t y = 0, x = 0;

    for (size_t k = 0; k < rank; k++) {
        count *= dim[k];
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(dst + y * (ptrdiff_t)size, src + x * (ptrdiff_t)size, size);
        for (size_t k = rank; k-- > 0;) {
            y += to[k];
            x += from[k];
            if (++index[k] < dim[k]) {
                break;
            }
            y -= to[k] * (ptrdiff_t)dim[k];
            x -= from[k] * (ptrdiff_t)dim[k];
            index[k] = 0;
        }
    }
}
