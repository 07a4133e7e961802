/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "model/lower/indices.h"

/* Operators that put updates at places given by indices: ScatterElements, Scatter, ScatterND. */

/* "add" and "mul" came with opset 16, "min" and "max" with opset 18. */
static int reduction(struct mdl_lower *l, enum mdl_scatter *ret)
{
    static const struct {
        const char *name;
        int64_t since;
    } names[MDL_SCATTER_COUNT] = {
        [MDL_SCATTER_NONE] = {"none", 0}, [MDL_SCATTER_ADD] = {"add", 16},
        [MDL_SCATTER_MUL] = {"mul", 16},  [MDL_SCATTER_MIN] = {"min", 18},
        [MDL_SCATTER_MAX] = {"max", 18},
    };
    const char *name = mdl_l_string(l, "reduction", "none");

    for (size_t i = 0; i < MDL_SCATTER_COUNT; i++) {
        if (strcmp(name, names[i].name) == 0 && l->opset >= names[i].since) {
            *ret = (enum mdl_scatter)i;
            return l->ir->failure;
        }
    }
    return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "reduction \"%s\" is not known in opset %lld", name,
                         (long long)l->opset);
}

static int same_type(struct mdl_lower *l)
{
    enum mdl_dtype x = mdl_l_value(l, l->in[0])->dtype, u = mdl_l_value(l, l->in[2])->dtype;

    if (x != u) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the updates have type %s, the input has type %s",
                             mdl_dtype_name(u), mdl_dtype_name(x));
    }
    return 0;
}

static size_t emit_scatter(struct mdl_lower *l, struct mdl_ir_op *op, size_t index)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);

    op->op.in[1] = index;
    return mdl_ir_emit(l->ir, op, x->dtype, x->rank, x->dim);
}

static size_t lower_scatter_elements(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_SCATTER_ELEMENTS, 3);
    size_t index;

    if (same_type(l) != 0 || reduction(l, &op.op.attr.scatter.which) != 0) {
        return MDL_NONE;
    }
    index = mdl_l_along(l, &op.op.attr.scatter.axis);
    if (!mdl_ir_same_dims(mdl_l_value(l, index), mdl_l_value(l, l->in[2]))) {
        return mdl_l_refuse(l, -EBADMSG, "the updates and the indices differ in shape");
    }
    return emit_scatter(l, &op, index);
}

static size_t lower_scatter_nd(struct mdl_lower *l, int arg)
{
    struct mdl_ir_op op = mdl_l_op(l, MDL_OP_SCATTER_ND, 3);
    struct mdl_ir_value want;
    const struct mdl_ir_value *x, *at, *u;
    size_t index, width;

    if (same_type(l) != 0 || reduction(l, &op.op.attr.scatter.which) != 0 ||
        mdl_l_tuples(l, 0, &index, &width) != 0) {
        return MDL_NONE;
    }
    x = mdl_l_value(l, l->in[0]);
    at = mdl_l_value(l, index);
    u = mdl_l_value(l, l->in[2]);
    want = (struct mdl_ir_value){.rank = at->rank - 1 + x->rank - width};
    if (u->rank == want.rank) {
        memcpy(want.dim, at->dim, (at->rank - 1) * sizeof(want.dim[0]));
        memcpy(want.dim + at->rank - 1, x->dim + width, (x->rank - width) * sizeof(want.dim[0]));
    }
    if (!mdl_ir_same_dims(u, &want)) {
        return mdl_l_refuse(l, -EBADMSG,
                            "the shape of the updates is not that of the indices' rows and of the "
                            "dimensions that they leave");
    }
    return emit_scatter(l, &op, index);
}

const struct mdl_lower_row mdl_lower_scatters[] = {
    {"Scatter", lower_scatter_elements, 3},
    {"ScatterElements", lower_scatter_elements, 3},
    {"ScatterND", lower_scatter_nd, 3},
    {0},
};
