/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of constants. */
#include <math.h>

#include "base/base.h"
#include "model/common/binary.h"
#include "model/ir/constant.h"
#include "model/ir/fold.h"

bool mdl_fold_binary(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *a = &ir->values[op->op.in[0]], *b = &ir->values[op->op.in[1]];
    enum mdl_binary which = op->op.attr.binary;
    const struct mdl_ir_value *y;
    size_t count = mdl_ir_elements(a);
    void *data;

    if (a->dtype != b->dtype) {
        return false;
    }
    data = mdl_const_make(ir, op->op.out[0]);
    y = &ir->values[op->op.out[0]];
    for (size_t i = 0; i < count; i++) {
        if (a->dtype == MDL_F32) {
            double v = mdl_real_binary(which, mdl_const_real(a, i), mdl_const_real(b, i));

            mdl_const_store(data, y->dtype, i, v, v != 0);
        } else {
            int64_t v = mdl_int_binary(which, mdl_const_int(a, i), mdl_const_int(b, i));

            mdl_const_store(data, y->dtype, i, (double)v, v);
        }
    }
    return true;
}

static bool real_unary(enum mdl_act act, float x, float *ret)
{
    switch (act) {
    case MDL_ACT_NEG:
        *ret = -x;
        return true;
    case MDL_ACT_ABS:
        *ret = fabsf(x);
        return true;
    case MDL_ACT_FLOOR:
        *ret = floorf(x);
        return true;
    case MDL_ACT_CEIL:
        *ret = ceilf(x);
        return true;
    case MDL_ACT_SQRT:
        *ret = sqrtf(x);
        return true;
    case MDL_ACT_RECIPROCAL:
        *ret = 1.0f / x;
        return true;
    case MDL_ACT_RELU:
        *ret = x < 0 ? 0 : x;
        return true;
    case MDL_ACT_EXP:
        *ret = expf(x);
        return true;
    case MDL_ACT_ROUND:
        *ret = nearbyintf(x);
        return true;
    default:
        return false;
    }
}

static bool int_unary(enum mdl_act act, int64_t x, int64_t *ret)
{
    switch (act) {
    case MDL_ACT_NEG:
        *ret = (int64_t)(0 - (uint64_t)x);
        return true;
    case MDL_ACT_ABS:
        *ret = x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
        return true;
    case MDL_ACT_RELU:
        *ret = x < 0 ? 0 : x;
        return true;
    case MDL_ACT_NOT:
        *ret = !x;
        return true;
    case MDL_ACT_BIT_NOT:
        *ret = ~x;
        return true;
    case MDL_ACT_FLOOR:
    case MDL_ACT_CEIL:
    case MDL_ACT_ROUND:
        *ret = x;
        return true;
    default:
        return false;
    }
}

bool mdl_fold_unary(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    size_t count = mdl_ir_elements(x);
    float f;
    int64_t n;
    void *data;

    if (x->dtype == MDL_F32 ? !real_unary(op->op.act, 0, &f) : !int_unary(op->op.act, 0, &n)) {
        return false;
    }
    data = mdl_const_make(ir, op->op.out[0]);
    for (size_t i = 0; i < count; i++) {
        f = 0;
        n = 0;
        if (x->dtype == MDL_F32) {
            real_unary(op->op.act, (float)mdl_const_real(x, i), &f);
        } else {
            int_unary(op->op.act, mdl_const_int(x, i), &n);
        }
        mdl_const_store(data, x->dtype, i, f, n);
    }
    return true;
}

static int64_t reduce_step(enum mdl_reduce which, int64_t sum, int64_t x)
{
    switch (which) {
    case MDL_RED_MAX:
        return base_max(sum, x);
    case MDL_RED_MIN:
        return base_min(sum, x);
    case MDL_RED_PROD:
        return (int64_t)((uint64_t)sum * (uint64_t)x);
    default:
        return (int64_t)((uint64_t)sum + (uint64_t)x);
    }
}

/* Integers only (a shape's product and the like); over all axes. */
bool mdl_fold_reduce(struct mdl_ir *ir, const struct mdl_ir_op *op)
{
    const struct mdl_ir_value *x = &ir->values[op->op.in[0]];
    enum mdl_reduce which = op->op.attr.reduce.which;
    size_t count = mdl_ir_elements(x);
    int64_t sum = which == MDL_RED_PROD ? 1 : 0;
    void *data;

    if (x->dtype == MDL_F32 || mdl_ir_elements(&ir->values[op->op.out[0]]) != 1 || count == 0 ||
        (which != MDL_RED_SUM && which != MDL_RED_PROD && which != MDL_RED_MAX &&
         which != MDL_RED_MIN)) {
        return false;
    }
    if (which == MDL_RED_MAX || which == MDL_RED_MIN) {
        sum = mdl_const_int(x, 0);
    }
    for (size_t i = 0; i < count; i++) {
        sum = reduce_step(which, sum, mdl_const_int(x, i));
    }
    data = mdl_const_make(ir, op->op.out[0]);
    mdl_const_store(data, x->dtype, 0, (double)sum, sum);
    return true;
}
