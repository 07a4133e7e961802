/* SPDX-License-Identifier: Apache-2.0 */
/* Lifetimes in op order, results that overwrite dead inputs, and offsets in the arena. */
#include "model/compile/passes.h"
#include "model/ir/strides.h"

#define STEM_CHANNELS_MAX 4u

static void touch(struct mdl_ir *ir, size_t v, size_t op)
{
    size_t ignored = 0;
    struct mdl_ir_storage *s;

    if (v == MDL_NONE) {
        return;
    }
    s = &ir->storages[mdl_ir_root(ir, ir->values[v].storage, &ignored)];
    if (!s->used) {
        s->used = true;
        s->mem.first_op = s->mem.last_op = op;
    }
    s->mem.first_op = base_min(s->mem.first_op, op);
    s->mem.last_op = base_max(s->mem.last_op, op);
}

static void find_lifetimes(struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->storage_count; i++) {
        ir->storages[i].used = false;
    }
    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_ir_op *op = &ir->run[k];

        for (size_t at = 0, v; (v = mdl_ir_reads(op, &at)) != MDL_NONE;) {
            touch(ir, v, k);
        }
        for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
            touch(ir, op->op.out[i], k);
        }
    }
}

static bool is_depthwise(const struct mdl_op *op)
{
    return op->kind == MDL_OP_CONV && op->attr.conv.groups > 1;
}

/* A first layer, whose input has few channels, and the pooling after it. */
static bool is_stem(const struct mdl_ir *ir, const struct mdl_op *a, const struct mdl_op *b)
{
    const struct mdl_ir_value *x = a->in[0] == MDL_NONE ? NULL : &ir->values[a->in[0]];

    return a->kind == MDL_OP_CONV && b->kind == MDL_OP_MAX_POOL && b->in[0] == a->out[0] &&
           x->rank > 1 && x->dim[1] <= STEM_CHANNELS_MAX;
}

/* A depthwise convolution and its neighbour may run as one: the second must not overwrite what the
 * first still reads. */
static void keep_pairs(struct mdl_ir *ir)
{
    for (size_t k = 0; k + 1 < ir->run_count; k++) {
        const struct mdl_op *a = &ir->run[k].op, *b = &ir->run[k + 1].op;

        if (a->kind != MDL_OP_CONV || b->kind != MDL_OP_CONV || b->in[0] != a->out[0] ||
            is_depthwise(a) == is_depthwise(b)) {
            continue;
        }
        touch(ir, a->in[0], k + 1);
        touch(ir, a->residual_in, k + 1);
    }
}

/* @v fills its whole unshared arena storage */
static bool fills_storage(const struct mdl_ir *ir, const struct mdl_ir_value *v)
{
    const struct mdl_ir_storage *s = &ir->storages[v->storage];

    return s->mem.home == MDL_HOME_ARENA && s->alias == MDL_NONE && v->offset == 0 &&
           s->mem.bytes == mdl_ir_bytes(v);
}

/* Return: whether op @k reads the same elements of all inputs before it writes an element of y:
 * true if everything that it reads from storage @s has y's strides. */
static bool reads_in_step(const struct mdl_ir *ir, const struct mdl_ir_op *op, size_t s,
                          const struct mdl_ir_value *y)
{
    for (size_t at = 0, in; (in = mdl_ir_reads(op, &at)) != MDL_NONE;) {
        const struct mdl_ir_value *x = &ir->values[in];
        size_t offset = 0;

        if (mdl_ir_root(ir, x->storage, &offset) != s) {
            continue;
        }
        if (x->offset + offset != 0 || !mdl_ir_same_dims(x, y) ||
            !mdl_strides_equal(y->rank, y->dim, x->stride, y->stride) ||
            mdl_dtype_bytes(x->dtype) != mdl_dtype_bytes(y->dtype)) {
            return false;
        }
    }
    return true;
}

/* Lets element functions overwrite an input of the same shape that is not read afterwards. */
static void merge_in_place(struct mdl_ir *ir)
{
    for (size_t k = 0; k < ir->run_count; k++) {
        const struct mdl_ir_op *op = &ir->run[k];
        const struct mdl_ir_value *y;

        if (!mdl_op_is(op->kind, MDL_OP_IN_PLACE)) {
            continue;
        }
        y = &ir->values[op->op.out[0]];
        if (!fills_storage(ir, y)) {
            continue;
        }
        for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
            const struct mdl_ir_value *x =
                op->op.in[i] == MDL_NONE ? NULL : &ir->values[op->op.in[i]];
            size_t offset = 0, root;
            struct mdl_ir_storage *s;

            if (!x) {
                continue;
            }
            root = mdl_ir_root(ir, x->storage, &offset);
            s = &ir->storages[root];
            if (s->mem.home != MDL_HOME_ARENA || s->mem.last_op != k || offset + x->offset != 0 ||
                s->mem.bytes != mdl_ir_bytes(y) || !mdl_ir_same_dims(x, y) ||
                !reads_in_step(ir, op, root, y)) {
                continue;
            }
            s->mem.last_op = base_max(s->mem.last_op, ir->storages[y->storage].mem.last_op);
            ir->storages[y->storage].alias = root;
            ir->storages[y->storage].alias_offset = 0;
            break;
        }
    }
}

/* The op that copies a model input into the arena, if no other op reads the input. */
size_t mdl_ir_entry_op(const struct mdl_ir *ir, size_t input)
{
    const struct mdl_ir_value *x = &ir->values[ir->inputs[input]], *y;
    size_t entry = MDL_NONE, readers = 0, offset = 0;

    if (x->storage == MDL_NONE) {
        return MDL_NONE;
    }
    for (size_t k = 0; k < ir->run_count; k++) {
        for (size_t at = 0, in; (in = mdl_ir_reads(&ir->run[k], &at)) != MDL_NONE;) {
            if (ir->values[in].storage == x->storage) {
                readers++;
                entry = k;
            }
        }
    }
    if (readers != 1 || ir->run[entry].kind != MDL_OP_COPY ||
        ir->run[entry].op.in[0] != ir->inputs[input]) {
        return MDL_NONE;
    }
    y = &ir->values[ir->run[entry].op.out[0]];
    if (ir->storages[mdl_ir_root(ir, y->storage, &offset)].mem.home != MDL_HOME_ARENA) {
        return MDL_NONE;
    }
    return entry;
}

/* An image is converted before op 0 runs: its place must be free from the start. */
static void keep_inputs(struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->g->input_count; i++) {
        const struct mdl_ir_value *x = &ir->values[ir->inputs[i]];
        size_t entry = mdl_ir_entry_op(ir, i), offset = 0;

        if (entry == MDL_NONE) {
            ir->storages[x->storage].used = true;
            ir->storages[x->storage].mem.first_op = 0;
        } else {
            const struct mdl_ir_value *y = &ir->values[ir->run[entry].op.out[0]];

            ir->storages[mdl_ir_root(ir, y->storage, &offset)].mem.first_op = 0;
            ir->storages[x->storage].used = false; /* no room of its own */
        }
    }
}

static bool wants_room(const struct mdl_ir_storage *s)
{
    return s->used && s->alias == MDL_NONE && s->mem.bytes > 0 &&
           (s->mem.home == MDL_HOME_ARENA || s->mem.home == MDL_HOME_INPUT);
}

/* Return: bytes of the arena; SIZE_MAX: more than the limit. */
static size_t place_all(struct mdl_ir *ir)
{
    struct mdl_storage **list = mdl_ir_alloc(ir, ir->storage_count, sizeof(struct mdl_storage *));
    size_t count = 0, bytes = 0;
    int r;

    for (size_t i = 0; i < ir->storage_count; i++) {
        if (wants_room(&ir->storages[i])) {
            list[count++] = &ir->storages[i].mem;
        }
    }
    r = mdl_arena_place(list, count, ir->options->arena_bytes_max, &bytes);
    if (r == -ENOMEM) {
        mdl_ir_nomem(ir);
    }
    return r < 0 ? SIZE_MAX : bytes;
}

/* A first layer and its pooling may run as one, too, which saves less than a depthwise pair: only
 * where keeping the layer's input for so long costs no memory. */
static void keep_stems(struct mdl_ir *ir, size_t bytes)
{
    for (size_t k = 0; k + 1 < ir->run_count; k++) {
        const struct mdl_op *a = &ir->run[k].op;
        size_t offset = 0, last;
        struct mdl_ir_storage *s;

        if (!is_stem(ir, a, &ir->run[k + 1].op)) {
            continue;
        }
        s = &ir->storages[mdl_ir_root(ir, ir->values[a->in[0]].storage, &offset)];
        last = s->mem.last_op;
        s->mem.last_op = base_max(last, k + 1);
        if (place_all(ir) > bytes) {
            s->mem.last_op = last;
            place_all(ir);
        }
    }
}

size_t mdl_memory(struct mdl_ir *ir)
{
    size_t bytes;

    find_lifetimes(ir);
    if (!ir->options->no_fusion) {
        keep_pairs(ir);
        merge_in_place(ir);
    }
    keep_inputs(ir);
    bytes = place_all(ir);
    if (bytes == SIZE_MAX) {
        mdl_ir_refuse(ir, -E2BIG,
                      "one frame needs more than %zu bytes of memory, which is the limit",
                      ir->options->arena_bytes_max);
    }
    if (!ir->options->no_fusion) {
        keep_stems(ir, bytes);
    }
    return bytes;
}
