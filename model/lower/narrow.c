/* SPDX-License-Identifier: Apache-2.0 */
/* Integers that are kept wider than they are. */
#include "model/lower/lowering.h"

static bool is_wide(enum mdl_narrow n)
{
    return n == MDL_NARROW_U16 || n == MDL_NARROW_I16;
}

const char *mdl_narrow_name(enum mdl_narrow n)
{
    static const char *const names[] = {[MDL_NARROW_U4] = "uint4",
                                        [MDL_NARROW_I4] = "int4",
                                        [MDL_NARROW_U16] = "uint16",
                                        [MDL_NARROW_I16] = "int16"};

    return n == MDL_NARROW_NONE ? "no other type" : names[n];
}

/* The lower 16 bits: x & 65535, and of signed ones (that ^ 32768) - 32768 */
static size_t wrap(struct mdl_lower *l, size_t x, enum mdl_narrow to)
{
    struct mdl_ir *ir = l->ir;
    size_t y = mdl_ir_binary(ir, MDL_BIN_BIT_AND, x, mdl_ir_scalar(ir, MDL_I32, UINT16_MAX));

    if (to == MDL_NARROW_I16) {
        size_t sign = mdl_ir_scalar(ir, MDL_I32, 1 << 15);

        y = mdl_ir_binary(ir, MDL_BIN_BIT_XOR, y, sign);
        y = mdl_ir_binary(ir, MDL_BIN_SUB, y, sign);
    }
    ir->values[y].narrow = to;
    return y;
}

size_t mdl_narrow_cast(struct mdl_lower *l, size_t x, enum mdl_dtype dtype, enum mdl_narrow to)
{
    enum mdl_narrow from = mdl_l_value(l, x)->narrow;
    bool same = mdl_l_value(l, x)->dtype == dtype;
    size_t y;

    mdl_unserved_if(l, to != MDL_NARROW_NONE && !is_wide(to), "a cast to %s is not supported",
                    mdl_narrow_name(to));
    if (same && from == to) {
        return x;
    }
    y = mdl_ir_cast(l->ir, x, dtype);
    return to != MDL_NARROW_NONE ? wrap(l, y, to) : same ? mdl_rows_alias(l->ir, x) : y;
}

/* Is @v an integer that is kept wider? */
static enum mdl_narrow narrow_of(const struct mdl_lower *l, size_t i)
{
    size_t v = mdl_l_in(l, i);

    return v == MDL_NONE || l->ir->values[v].sequence ? MDL_NARROW_NONE : l->ir->values[v].narrow;
}

/* The outputs are of the type of input @i. */
static void apply(struct mdl_lower *l, bool wraps, size_t i)
{
    enum mdl_narrow of = narrow_of(l, i);
    enum mdl_dtype dtype = mdl_l_value(l, l->in[i])->dtype;

    mdl_unserved_if(l, of != MDL_NARROW_NONE && wraps && !is_wide(of), "%s of %s is not supported",
                    l->node->op_type, mdl_narrow_name(of));
    for (size_t k = i + 1; k < l->in_count && wraps; k++) {
        mdl_bad_if(l,
                   l->in[k] != MDL_NONE && mdl_l_value(l, l->in[k])->dtype == dtype &&
                       narrow_of(l, k) != of,
                   "inputs %zu and %zu have different types", i, k);
    }
    for (size_t k = 0; k < l->out_count; k++) {
        if (l->out[k] == MDL_NONE || mdl_l_value(l, l->out[k])->dtype != dtype) {
            continue; /* positions of TopK */
        }
        if (wraps && is_wide(of)) {
            l->out[k] = wrap(l, l->out[k], of);
        }
        l->ir->values[l->out[k]].narrow = of;
    }
}

void mdl_narrow_outputs(struct mdl_lower *l, const struct mdl_lower_row *row)
{
    enum mdl_narrow any = MDL_NARROW_NONE;
    enum mdl_dtype dtype = MDL_DTYPE_COUNT;

    for (size_t i = 0; i < l->in_count; i++) {
        if (narrow_of(l, i) != MDL_NARROW_NONE) {
            any = narrow_of(l, i);
            dtype = mdl_l_value(l, l->in[i])->dtype;
        }
    }
    if (any == MDL_NARROW_NONE || row->narrow == MDL_NARROW_OWN) {
        return;
    }
    if (row->narrow != MDL_NARROW_NOT && mdl_l_in(l, row->like) != MDL_NONE) {
        apply(l, row->narrow == MDL_NARROW_WRAPS, row->like);
    }
    for (size_t k = 0; k < l->out_count && row->narrow == MDL_NARROW_NOT; k++) {
        mdl_unserved_if(l, l->out[k] != MDL_NONE && mdl_l_value(l, l->out[k])->dtype == dtype,
                        "%s of %s is not supported", l->node->op_type, mdl_narrow_name(any));
    }
}
