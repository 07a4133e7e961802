/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower/narrow.h"

#include "model/ir/rows.h"

/* What operators do with integers that are kept wider than they are. An operator that is not here
 * and gives such integers is refused. */
enum rule {
    KEEPS = 1,
    /* the result's elements are some of the inputs', or lie between them */ WRAPS,
    /* the result may need more bits, and its lower ones are right */
};

static const struct {
    const char *op_type;
    unsigned char rule, input; /* the input that has the result's type */
} rules[] = {
    {"Abs", WRAPS, 0},
    {"Add", WRAPS, 0},
    {"BitShift", WRAPS, 0},
    {"BitwiseAnd", KEEPS, 0},
    {"BitwiseNot", WRAPS, 0},
    {"BitwiseOr", KEEPS, 0},
    {"BitwiseXor", KEEPS, 0},
    {"CenterCropPad", KEEPS, 0},
    {"Clip", KEEPS, 0},
    {"Compress", KEEPS, 0},
    {"Concat", KEEPS, 0},
    {"DepthToSpace", KEEPS, 0},
    {"Div", WRAPS, 0},
    {"Expand", KEEPS, 0},
    {"EyeLike", KEEPS, 0},
    {"Flatten", KEEPS, 0},
    {"Gather", KEEPS, 0},
    {"GatherElements", KEEPS, 0},
    {"GatherND", KEEPS, 0},
    {"Identity", KEEPS, 0},
    {"Max", KEEPS, 0},
    {"Min", KEEPS, 0},
    {"Mod", KEEPS, 0},
    {"Mul", WRAPS, 0},
    {"Neg", WRAPS, 0},
    {"OneHot", KEEPS, 2},
    {"Pad", KEEPS, 0},
    {"Range", WRAPS, 0},
    {"Relu", KEEPS, 0},
    {"Reshape", KEEPS, 0},
    {"ReverseSequence", KEEPS, 0},
    {"Scatter", KEEPS, 0},
    {"ScatterElements", WRAPS, 0},
    {"ScatterND", WRAPS, 0},
    {"Sign", KEEPS, 0},
    {"Slice", KEEPS, 0},
    {"SpaceToDepth", KEEPS, 0},
    {"Split", KEEPS, 0},
    {"Squeeze", KEEPS, 0},
    {"Sub", WRAPS, 0},
    {"Tile", KEEPS, 0},
    {"TopK", KEEPS, 0},
    {"Transpose", KEEPS, 0},
    {"Trilu", KEEPS, 0},
    {"Unsqueeze", KEEPS, 0},
    {"Where", KEEPS, 1},
};

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
static void apply(struct mdl_lower *l, enum rule rule, size_t i)
{
    enum mdl_narrow of = narrow_of(l, i);
    enum mdl_dtype dtype = mdl_l_value(l, l->in[i])->dtype;

    mdl_unserved_if(l, of != MDL_NARROW_NONE && rule == WRAPS && !is_wide(of),
                    "%s of %s is not supported", l->node->op_type, mdl_narrow_name(of));
    for (size_t k = i + 1; k < l->in_count && rule == WRAPS; k++) {
        mdl_bad_if(l,
                   l->in[k] != MDL_NONE && mdl_l_value(l, l->in[k])->dtype == dtype &&
                       narrow_of(l, k) != of,
                   "inputs %zu and %zu have different types", i, k);
    }
    for (size_t k = 0; k < l->out_count; k++) {
        if (l->out[k] == MDL_NONE || mdl_l_value(l, l->out[k])->dtype != dtype) {
            continue; /* positions of TopK */
        }
        if (rule == WRAPS && is_wide(of)) {
            l->out[k] = wrap(l, l->out[k], of);
        }
        l->ir->values[l->out[k]].narrow = of;
    }
}

void mdl_narrow_outputs(struct mdl_lower *l)
{
    enum mdl_narrow any = MDL_NARROW_NONE;
    enum mdl_dtype dtype = MDL_DTYPE_COUNT;

    for (size_t i = 0; i < l->in_count; i++) {
        if (narrow_of(l, i) != MDL_NARROW_NONE) {
            any = narrow_of(l, i);
            dtype = mdl_l_value(l, l->in[i])->dtype;
        }
    }
    if (any == MDL_NARROW_NONE) {
        return;
    }
    for (size_t i = 0; i < base_array_count(rules); i++) {
        if (strcmp(rules[i].op_type, l->node->op_type) == 0) {
            if (mdl_l_in(l, rules[i].input) != MDL_NONE) {
                apply(l, rules[i].rule, rules[i].input);
            }
            return;
        }
    }
    for (size_t k = 0; k < l->out_count; k++) {
        mdl_unserved_if(l, l->out[k] != MDL_NONE && mdl_l_value(l, l->out[k])->dtype == dtype,
                        "%s of %s is not supported", l->node->op_type, mdl_narrow_name(any));
    }
}
