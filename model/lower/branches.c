/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/ir/rows.h"
#include "model/lower/lowering.h"

/* Return: as l->branch(). */
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

    if (take_branch(l, none) != 0) {
        return l->ir->failure;
    }
    empty = mdl_pool_memdup(l->ir->pool, l->out, l->out_count * sizeof(*empty));
    if (!empty || take_branch(l, !none) != 0) {
        return empty ? l->ir->failure : mdl_ir_nomem(l->ir);
    }
    for (size_t i = 0; i < l->out_count; i++) {
        if (!is_empty_if(l, l->out[i], empty[i], count)) {
            mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                          "its condition asks whether there are rows; that both branches give the "
                          "same where there are none is not known");
        }
    }
    return l->ir->failure;
}

/* An If whose condition is known when the model is loaded is one of its branches. Exporters write
 * such where a shape was open, and the shape is known here. */
static size_t lower_if(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *condition = mdl_l_value(l, l->in[0]);
    size_t count;
    bool none;

    if (mdl_ir_elements(condition) != 1) {
        return mdl_l_refuse(l, -EBADMSG, "its condition has %zu elements",
                            mdl_ir_elements(condition));
    }
    if (condition->data) {
        take_branch(l, mdl_const_int(condition, 0) != 0);
    } else if (mdl_rows_asks(l->ir, l->in[0], &count, &none)) {
        if_any(l, count, none);
    } else {
        mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                      "its condition must be a constant, and depends on the model's input");
    }
    return l->out[0];
}

const struct mdl_lower_row mdl_lower_branches[] = {
    {"If", lower_if, 1, .narrows = true},
    {0},
};
