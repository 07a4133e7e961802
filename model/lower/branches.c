/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/ir/rows.h"
#include "model/lower/lowering.h"

/* Return: 0, -errno, or as l->branch(). */
static int take_branch(struct mdl_lower *l, bool then)
{
    const struct mdl_gattr *a = mdl_l_attr(l, then ? "then_branch" : "else_branch");

    if (!a || a->type != MDL_ATTR_BRANCH) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "a branch is missing");
    }
    if (a->branch->output_count != l->out_count) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "a branch has %zu outputs, the node %zu",
                             a->branch->output_count, l->out_count);
    }
    return l->branch(l, a->branch, NULL, l->out);
}

/* Return: whether @y is @empty, a constant without elements, where @count is 0. */
static bool is_empty_if(const struct mdl_lower *l, size_t y, size_t empty, size_t count)
{
    struct mdl_ir_value a, b;

    if (y == MDL_NONE || empty == MDL_NONE) {
        return y == empty;
    }
    a = *mdl_l_value(l, y);
    b = *mdl_l_value(l, empty);
    if (!b.data || a.rows == MDL_NONE || a.dtype != b.dtype || a.rank != b.rank) {
        return false;
    }
    a.dim[a.rows_dim] = 0;
    return mdl_ir_same_dims(&a, &b) && mdl_rows_none_if(l->ir, y, count);
}

/* "Is there any box?", as torchvision's suppression asks: the branch for boxes is taken always, if
 * without boxes it gives what the other does. */
static int if_any(struct mdl_lower *l, size_t count, bool none)
{
    size_t *empty;
    int r = take_branch(l, none);

    if (r != 0) {
        return r;
    }
    empty = mdl_pool_memdup(l->ir->pool, l->out, l->out_count * sizeof(*empty));
    r = empty ? take_branch(l, !none) : mdl_ir_nomem(l->ir);
    for (size_t i = 0; i < l->out_count && r == 0; i++) {
        if (!is_empty_if(l, l->out[i], empty[i], count)) {
            r = mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                              "its condition asks whether there are rows; that both branches give "
                              "the same where there are none is not known");
        }
    }
    return r;
}

/* An If whose condition is known when the model is loaded is one of its branches. Exporters write
 * such where a shape was open, and the shape is known here. */
static int lower_if(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *condition;
    size_t count;
    bool none;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    condition = mdl_l_value(l, l->in[0]);
    if (mdl_ir_elements(condition) != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "its condition has %zu elements",
                             mdl_ir_elements(condition));
    }
    if (condition->data) {
        return take_branch(l, mdl_const_int(condition, 0) != 0);
    }
    if (mdl_rows_asks(l->ir, l->in[0], &count, &none)) {
        return if_any(l, count, none);
    }
    return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                         "its condition must be a constant, and depends on the model's input");
}

const struct mdl_lower_row mdl_lower_branches[] = {
    {"If", lower_if, 0, .narrows = true},
    {0},
};
