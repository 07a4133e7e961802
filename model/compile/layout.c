/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base.h"
#include "model/compile.h"

/* Strides and copies. Two walks over the ops, in order:
 *
 *  1. a rehearsal that gives every value strides as if no concat could share memory;
 *  2. then each concat decides, outermost first, which of its inputs may be written straight into
 *     its own memory (their strides are then the concat's);
 *  3. the real walk, which makes storages and the list of ops to run, with copies where a layout
 *     must change: spatial operators read and write channels-last, reshapes need an order that
 *     allows a view, a model output must be row-major in its own buffer.
 */

static bool is_spatial(const struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    switch (op->kind) {
    case MDL_OP_CONV:
    case MDL_OP_CONV_TRANSPOSE:
    case MDL_OP_MAX_POOL:
    case MDL_OP_AVG_POOL:
    case MDL_OP_LRN:
    case MDL_OP_RESIZE:
    case MDL_OP_AFFINE:
    case MDL_OP_QUANTIZE: {
        size_t rank = ir->values[op->op.in[0]].rank;

        return rank >= 3 && rank <= 5;
    }
    default:
        return false;
    }
}

/* Operators whose result keeps the order of what they read. */
static bool follows_input(int kind)
{
    switch (kind) {
    case MDL_OP_COPY:
    case MDL_OP_BINARY:
    case MDL_OP_UNARY:
    case MDL_OP_PRELU:
    case MDL_OP_SOFTMAX:
    case MDL_OP_PAD:
    case MDL_OP_WHERE:
    case MDL_OP_AFFINE:
    case MDL_OP_QUANTIZE:
    case MDL_OP_DEQUANTIZE:
        return true;
    default:
        return false;
    }
}

static bool has_zero_stride(const struct mdl_ir_value *v)
{
    for (size_t i = 0; i < v->rank; i++) {
        if (v->dim[i] > 1 && v->stride[i] == 0) {
            return true;
        }
    }
    return false;
}

/* Order of an op's outputs. */
static void choose_order(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t out,
                         size_t *order)
{
    const struct mdl_ir_value *y = &ir->values[out], *best = NULL;

    if (is_spatial(ir, op)) {
        mdl_order_channels_last(y->rank, order);
        return;
    }
    if (follows_input(op->kind)) {
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            size_t in = op->op.in[i];
            const struct mdl_ir_value *x = in == MDL_NONE ? NULL : &ir->values[in];

            if (!x || x->rank != y->rank || has_zero_stride(x) ||
                (op->kind != MDL_OP_PAD && !mdl_ir_same_dims(x, y))) {
                continue;
            }
            /* constants do not decide: their order is the file's */
            if (!best || (best->data && !x->data)) {
                best = x;
            }
        }
    }
    /* An output goes out row-major at once, but for images: a plain copy of them is faster than
     * element functions across layouts. */
    if (best && (!y->output || mdl_strides_nhwc(best->rank, best->dim, best->stride))) {
        mdl_order_of(best->rank, best->dim, best->stride, order);
    } else {
        mdl_order_rows(y->rank, order);
    }
}

static void set_dense(struct mdl_ir_value *v, const size_t *order)
{
    memcpy(v->order, order, v->rank * sizeof(*order));
    mdl_strides_dense(v->rank, v->dim, order, v->stride);
}

/* Strides (and, in the real walk, storage and offset) of a view; false: only a copy can do it. */
static bool place_view(const struct mdl_ir_op *op, const struct mdl_ir_value *x,
                       struct mdl_ir_value *y)
{
    ptrdiff_t at = 0;

    y->storage = x->storage;
    for (size_t i = 0; i < y->rank; i++) {
        size_t k = i + x->rank - y->rank; /* EXPAND only; wraps for the dims that are new */

        switch (op->view.kind) {
        case MDL_VIEW_PERMUTE:
            y->stride[i] = x->stride[op->view.perm[i]];
            break;
        case MDL_VIEW_SLICE:
            y->stride[i] = x->stride[i] * op->view.step[i];
            at += y->dim[i] ? x->stride[i] * (ptrdiff_t)op->view.start[i] : 0;
            break;
        case MDL_VIEW_EXPAND:
            y->stride[i] = i + x->rank >= y->rank && x->dim[k] == y->dim[i] ? x->stride[k] : 0;
            break;
        default:
            break;
        }
    }
    if (op->view.kind == MDL_VIEW_RESHAPE &&
        !mdl_strides_reshape(x->rank, x->dim, x->stride, y->rank, y->dim, y->stride)) {
        return false;
    }
    if (mdl_ir_elements(y) == 0) {
        at = 0;
    }
    y->offset = x->offset + (size_t)(at * (ptrdiff_t)mdl_dtype_bytes(x->dtype));
    return true;
}

static int new_storage(struct mdl_ir *ir, enum mdl_home home, size_t bytes, size_t *ret)
{
    int r = mdl_ir_grow(ir, (void **)&ir->storages, &ir->storage_cap, ir->storage_count,
                        sizeof(*ir->storages));

    if (r < 0) {
        return r;
    }
    ir->storages[ir->storage_count] =
        (struct mdl_ir_storage){.home = home, .bytes = bytes, .alias = MDL_NONE};
    *ret = ir->storage_count++;
    return 0;
}

/* Memory of a value that an op writes: the concat's that it is part of, or its own. */
static int place_value(struct mdl_ir *ir, size_t v, const size_t *order)
{
    size_t whole = ir->values[v].concat;
    struct mdl_ir_value *x;
    int r;

    if (whole == MDL_NONE) {
        x = &ir->values[v];
        set_dense(x, order);
        x->offset = 0;
        return x->storage != MDL_NONE
                   ? 0
                   : new_storage(ir, MDL_HOME_ARENA, mdl_ir_bytes(x), &x->storage);
    }
    if (ir->values[whole].storage == MDL_NONE) { /* its first part */
        r = place_value(ir, whole, ir->values[whole].order);
        if (r < 0) {
            return r;
        }
    }
    x = &ir->values[v];
    memcpy(x->stride, ir->values[whole].stride, sizeof(x->stride));
    x->storage = ir->values[whole].storage;
    x->offset = ir->values[whole].offset + x->concat_at *
                                               (size_t)ir->values[whole].stride[x->concat_axis] *
                                               mdl_dtype_bytes(x->dtype);
    return 0;
}

static int place_leaf(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_value *x = &ir->values[v];
    size_t order[MDL_RANK_MAX];
    int r;

    if (x->storage != MDL_NONE || (!x->data && x->input == MDL_NONE)) {
        return 0;
    }
    mdl_order_rows(x->rank, order);
    set_dense(x, order);
    r = new_storage(ir, x->data ? MDL_HOME_CONST : MDL_HOME_INPUT, mdl_ir_bytes(x), &x->storage);
    if (r < 0) {
        return r;
    }
    ir->storages[x->storage].data = x->data;
    ir->storages[x->storage].in_file = x->in_file;
    ir->storages[x->storage].index = x->data ? 0 : x->input;
    return 0;
}

static int run_op(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    int r;

    if (ir->run_count >= MDL_IR_RUN_MAX) {
        return mdl_ir_refuse(ir, -E2BIG, "the model needs more than %u operators and copies",
                             MDL_IR_RUN_MAX);
    }
    r = mdl_ir_grow(ir, (void **)&ir->run, &ir->run_cap, ir->run_count, sizeof(*ir->run));
    if (r < 0) {
        return r;
    }
    ir->run[ir->run_count++] = *op;
    return 0;
}

/* A dense copy of @x in @order. */
static int copy_value(struct mdl_ir *ir, const struct mdl_ir_op *because, size_t x,
                      const size_t *order, size_t *ret)
{
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_COPY);
    const struct mdl_ir_value *v = &ir->values[x];
    size_t y;
    int r = mdl_ir_value_new(ir, v->dtype, v->rank, v->dim, &y);

    if (r < 0) {
        return r;
    }
    ir->values[y].name = v->name;
    r = place_value(ir, y, order);
    if (r < 0) {
        return r;
    }
    op.op.name = because->op.name;
    op.op.in[0] = x;
    op.op.out[0] = y;
    *ret = y;
    return run_op(ir, &op);
}

/* The value that spatial operators read instead of @x. */
static int channels_last(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *x)
{
    struct mdl_ir_value *v = &ir->values[*x];
    size_t order[MDL_RANK_MAX], y = v->channels_last;
    int r;

    if (mdl_strides_nhwc(v->rank, v->dim, v->stride)) {
        return 0;
    }
    if (y == MDL_NONE) {
        mdl_order_channels_last(v->rank, order);
        r = copy_value(ir, op, *x, order, &y);
        if (r < 0) {
            return r;
        }
        ir->values[*x].channels_last = y;
    }
    *x = y;
    return 0;
}

/* Weights that are computed per frame: as in ONNX. */
static int row_major(struct mdl_ir *ir, const struct mdl_ir_op *op, size_t *x)
{
    const struct mdl_ir_value *v = &ir->values[*x];
    size_t order[MDL_RANK_MAX];

    if (mdl_strides_rows(v->rank, v->dim, v->stride)) {
        return 0;
    }
    mdl_order_rows(v->rank, order);
    return copy_value(ir, op, *x, order, x);
}

/* ---- the rehearsal ---- */

static void rehearse_concat(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    struct mdl_ir_value *y = &ir->values[op->op.out[0]];
    const struct mdl_ir_value *best = NULL;
    size_t order[MDL_RANK_MAX];

    for (size_t i = 0; i < op->concat_count; i++) {
        const struct mdl_ir_value *x = &ir->values[op->concat_in[i]];

        if (!best || (best->data && !x->data)) {
            best = x;
        }
    }
    mdl_order_of(best->rank, best->dim, best->stride, order);
    set_dense(y, order);
}

static void rehearse_leaf(struct mdl_ir *ir, size_t v)
{
    struct mdl_ir_value *x = v == MDL_NONE ? NULL : &ir->values[v];
    size_t order[MDL_RANK_MAX];

    if (x && (x->data || x->input != MDL_NONE)) {
        mdl_order_rows(x->rank, order);
        mdl_strides_dense(x->rank, x->dim, order, x->stride);
    }
}

static void rehearse(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op *op = &ir->ops[k];
        size_t order[MDL_RANK_MAX];

        if (op->dead) {
            continue;
        }
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            rehearse_leaf(ir, op->op.in[i]);
        }
        for (size_t i = 0; i < op->concat_count; i++) {
            rehearse_leaf(ir, op->concat_in[i]);
        }
        if (op->kind == MDL_IR_CONCAT) {
            rehearse_concat(ir, op);
        } else if (op->kind == MDL_IR_VIEW) {
            struct mdl_ir_value x = ir->values[op->op.in[0]], *y = &ir->values[op->op.out[0]];

            if (!place_view(op, &x, y)) {
                mdl_order_reshape(x.rank, x.dim, x.stride, y->rank, y->dim, order);
                mdl_strides_dense(x.rank, x.dim, order, x.stride);
                place_view(op, &x, y);
            }
        } else {
            for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
                if (op->op.out[i] != MDL_NONE) {
                    choose_order(ir, op, op->op.out[i], order);
                    set_dense(&ir->values[op->op.out[i]], order);
                }
            }
        }
    }
}

/* ---- concats ---- */

/* [x0..xk] inside a later [x0..xk, ...]: the later one then holds the first as its first part (a
 * dense block writes every prefix of its growing list). */
static void nest_concats(struct mdl_ir *ir)
{
    enum { LOOK_AHEAD = 64 };

    for (size_t a = 0; a < ir->op_count; a++) {
        const struct mdl_ir_op *inner = &ir->ops[a];

        if (inner->dead || inner->kind != MDL_IR_CONCAT) {
            continue;
        }
        for (size_t b = a + 1, seen = 0; b < ir->op_count && seen < LOOK_AHEAD; b++) {
            struct mdl_ir_op *outer = &ir->ops[b];

            if (outer->dead || outer->kind != MDL_IR_CONCAT) {
                continue;
            }
            seen++;
            if (outer->concat_axis != inner->concat_axis ||
                outer->concat_count <= inner->concat_count ||
                memcmp(outer->concat_in, inner->concat_in,
                       inner->concat_count * sizeof(*inner->concat_in)) != 0) {
                continue;
            }
            outer->concat_in[0] = inner->op.out[0];
            for (size_t i = inner->concat_count; i < outer->concat_count; i++) {
                outer->concat_in[i - inner->concat_count + 1] = outer->concat_in[i];
            }
            outer->concat_count -= inner->concat_count - 1;
        }
    }
}

static bool same_order(size_t rank, const size_t *dim, const size_t *a, const size_t *b)
{
    size_t i = 0, k = 0;

    for (;;) {
        while (i < rank && dim[a[i]] == 1) {
            i++;
        }
        while (k < rank && dim[b[k]] == 1) {
            k++;
        }
        if (i == rank || k == rank) {
            return i == rank && k == rank;
        }
        if (a[i++] != b[k++]) {
            return false;
        }
    }
}

/* May the op that makes @v write it with the strides of the concat @y? */
static bool may_be_part(const struct mdl_ir *ir, const struct mdl_ir_value *v,
                        const struct mdl_ir_value *y)
{
    const struct mdl_ir_op *op;

    if (v->op == MDL_NONE || v->data || v->output || v->concat != MDL_NONE) {
        return false;
    }
    op = &ir->ops[v->op];
    if (op->kind == MDL_IR_VIEW || op->op.out[0] == MDL_NONE || &ir->values[op->op.out[0]] != v) {
        return false;
    }
    if (op->kind != MDL_IR_CONCAT && is_spatial(ir, op)) {
        return mdl_strides_nhwc(v->rank, v->dim, y->stride);
    }
    return same_order(v->rank, v->dim, v->order, y->order);
}

static void join_concats(struct mdl_ir *ir)
{
    for (size_t k = ir->op_count; k-- > 0;) {
        const struct mdl_ir_op *op = &ir->ops[k];
        struct mdl_ir_value *y;
        size_t at = 0;

        if (op->dead || op->kind != MDL_IR_CONCAT) {
            continue;
        }
        y = &ir->values[op->op.out[0]];
        if (y->concat != MDL_NONE) { /* part of an outer one, which has its strides by now */
            memcpy(y->stride, ir->values[y->concat].stride, sizeof(y->stride));
            memcpy(y->order, ir->values[y->concat].order, sizeof(y->order));
        }
        for (size_t i = 0; i < op->concat_count; i++) {
            struct mdl_ir_value *v = &ir->values[op->concat_in[i]];

            if (may_be_part(ir, v, y)) { /* a second mention finds v->concat set */
                v->concat = op->op.out[0];
                v->concat_axis = op->concat_axis;
                v->concat_at = at;
            }
            at += v->dim[op->concat_axis];
        }
    }
}

/* ---- the real walk ---- */

static int walk_view(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t x = op->op.in[0], order[MDL_RANK_MAX];
    struct mdl_ir_value *y = &ir->values[op->op.out[0]], *v = &ir->values[x];
    int r;

    if (place_view(op, v, y)) {
        return 0;
    }
    mdl_order_reshape(v->rank, v->dim, v->stride, y->rank, y->dim, order);
    r = copy_value(ir, op, x, order, &x);
    if (r == 0 && !place_view(op, &ir->values[x], &ir->values[op->op.out[0]])) {
        return mdl_ir_refuse(ir, -EOPNOTSUPP, "a reshape found no layout"); /* cannot happen */
    }
    return r;
}

static int walk_concat(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    size_t whole = op->op.out[0], at = 0;
    int r = ir->values[whole].storage == MDL_NONE || ir->values[whole].concat != MDL_NONE
                ? place_value(ir, whole, ir->values[whole].order)
                : 0;

    for (size_t i = 0; r == 0 && i < op->concat_count; i++) {
        struct mdl_ir_op copy = mdl_ir_op_make(ir, MDL_OP_COPY);
        size_t x = op->concat_in[i], part, extent = ir->values[x].dim[op->concat_axis];
        const struct mdl_ir_value *v = &ir->values[x];

        if (v->concat == whole && v->concat_at == at) {
            at += extent;
            continue;
        }
        r = mdl_ir_value_new(ir, v->dtype, v->rank, v->dim, &part);
        if (r < 0) {
            break;
        }
        ir->values[part].name = v->name;
        ir->values[part].concat = whole;
        ir->values[part].concat_axis = op->concat_axis;
        ir->values[part].concat_at = at;
        r = place_value(ir, part, NULL);
        copy.op.name = op->op.name;
        copy.op.in[0] = x;
        copy.op.out[0] = part;
        r = r < 0 ? r : run_op(ir, &copy);
        at += extent;
    }
    return r;
}

static int walk_op(struct mdl_ir *ir, const struct mdl_ir_op *given)
{
    struct mdl_ir_op op = *given;
    bool empty = true;
    int r = 0;

    if (op.kind == MDL_OP_CONV || op.kind == MDL_OP_CONV_TRANSPOSE) {
        r = row_major(ir, &op, &op.op.in[1]);
    }
    if (r == 0 && is_spatial(ir, &op)) {
        r = channels_last(ir, &op, &op.op.in[0]);
        if (r == 0 && op.op.residual_in != MDL_NONE) {
            r = channels_last(ir, &op, &op.op.residual_in);
        }
    }
    for (size_t i = 0; r == 0 && i < MDL_OP_OUT_MAX; i++) {
        size_t order[MDL_RANK_MAX];

        if (op.op.out[i] != MDL_NONE) {
            choose_order(ir, &op, op.op.out[i], order);
            r = place_value(ir, op.op.out[i], order);
            empty &=
                mdl_ir_elements(&ir->values[op.op.out[i]]) == 0 && !ir->values[op.op.out[i]].output;
        }
    }
    return r < 0 || empty ? r : run_op(ir, &op);
}

static int place_leaves(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < MDL_OP_IN_MAX; i++) {
        r = op->op.in[i] == MDL_NONE ? 0 : place_leaf(ir, op->op.in[i]);
    }
    for (size_t i = 0; r == 0 && i < op->concat_count; i++) {
        r = place_leaf(ir, op->concat_in[i]);
    }
    if (r == 0 && op->op.residual_in != MDL_NONE) {
        r = place_leaf(ir, op->op.residual_in);
    }
    return r;
}

static int walk(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->op_count; k++) {
        const struct mdl_ir_op op = ir->ops[k];
        int r;

        if (op.dead) {
            continue;
        }
        r = place_leaves(ir, &op);
        if (r < 0) {
            return r;
        }
        r = op.kind == MDL_IR_VIEW     ? walk_view(ir, &op)
            : op.kind == MDL_IR_CONCAT ? walk_concat(ir, &op)
                                       : walk_op(ir, &op);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* ---- outputs ---- */

size_t mdl_ir_root(const struct mdl_ir *ir, size_t storage, size_t *offset)
{
    while (ir->storages[storage].alias != MDL_NONE) {
        *offset += ir->storages[storage].alias_offset;
        storage = ir->storages[storage].alias;
    }
    return storage;
}

/* Does @v lie in memory of its own exactly as the dense, row-major @bytes would? Then that memory
 * can be the other's and the copy is not needed. */
static bool can_move(const struct mdl_ir *ir, const struct mdl_ir_value *v)
{
    const struct mdl_ir_storage *s = &ir->storages[v->storage];

    return s->home == MDL_HOME_ARENA && s->alias == MDL_NONE && v->offset == 0 &&
           s->bytes == mdl_ir_bytes(v) && mdl_strides_rows(v->rank, v->dim, v->stride);
}

static int walk_output(struct mdl_ir *ir, size_t i)
{
    size_t v = ir->outputs[i], y, to;
    struct mdl_ir_op op = mdl_ir_op_make(ir, MDL_OP_COPY);
    size_t order[MDL_RANK_MAX];
    int r = place_leaf(ir, v);

    r = r < 0 ? r : new_storage(ir, MDL_HOME_OUTPUT, mdl_ir_bytes(&ir->values[v]), &to);
    if (r < 0) {
        return r;
    }
    ir->storages[to].index = i;
    ir->storages[to].merged = true;
    if (can_move(ir, &ir->values[v])) {
        ir->storages[ir->values[v].storage].alias = to;
        ir->output_values[i] = v;
        return 0;
    }
    r = mdl_ir_value_new(ir, ir->values[v].dtype, ir->values[v].rank, ir->values[v].dim, &y);
    if (r < 0) {
        return r;
    }
    mdl_order_rows(ir->values[y].rank, order);
    ir->values[y].storage = to;
    ir->values[y].name = ir->g->outputs[i].name;
    set_dense(&ir->values[y], order);
    op.op.name = (char *)(uintptr_t)ir->g->outputs[i].name;
    op.op.in[0] = v;
    op.op.out[0] = y;
    ir->output_values[i] = y;
    return run_op(ir, &op);
}

/* Copies whose source could just as well have been written at the destination: a head that is
 * transposed, flattened and concatenated with others. */
static void drop_copies(struct mdl_ir *ir)
{
    size_t kept = 0;

    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_ir_op *op = &ir->run[k];
        const struct mdl_ir_value *x, *y;
        size_t ignored = 0;

        if (op->kind == MDL_OP_COPY) {
            x = &ir->values[op->op.in[0]];
            y = &ir->values[op->op.out[0]];
            if (y->concat != MDL_NONE && x->dtype == y->dtype && can_move(ir, x) &&
                mdl_strides_rows(y->rank, y->dim, y->stride) &&
                mdl_ir_root(ir, y->storage, &ignored) != x->storage) {
                struct mdl_ir_storage *s = &ir->storages[x->storage];

                s->alias = y->storage;
                s->alias_offset = y->offset;
                ir->storages[y->storage].merged = true;
                continue;
            }
        }
        ir->run[kept++] = *op;
    }
    ir->run_count = kept;
}

int mdl_layout(struct mdl_ir *ir)
{
    int r;

    ir->node = NULL;
    ir->node_name = "";
    ir->output_values = mdl_pool_alloc(ir->pool, ir->g->output_count, sizeof(*ir->output_values));
    if (!ir->output_values) {
        return mdl_ir_nomem(ir);
    }
    if (!ir->options->no_fusion) {
        nest_concats(ir);
    }
    rehearse(ir);
    if (!ir->options->no_fusion) {
        join_concats(ir);
    }
    r = 0;
    for (size_t i = 0; r == 0 && i < ir->g->input_count; i++) {
        r = place_leaf(ir, ir->inputs[i]); /* also one that nobody reads */
    }
    r = r < 0 ? r : walk(ir);
    for (size_t i = 0; r == 0 && i < ir->g->output_count; i++) {
        r = walk_output(ir, i);
    }
    if (r < 0) {
        return r;
    }
    drop_copies(ir);
    return 0;
}
