/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/lower/lowering.h"

/* An If whose condition is known when the model is loaded is one of its branches. Exporters write
 * such where a shape was open, and the shape is known here. */
static int lower_if(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *condition;
    const struct mdl_gattr *a;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    condition = mdl_l_value(l, l->in[0]);
    if (!condition->data) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP,
                             "its condition must be a constant, and depends on the model's input");
    }
    if (mdl_ir_elements(condition) != 1) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "its condition has %zu elements",
                             mdl_ir_elements(condition));
    }
    a = mdl_l_attr(l, mdl_const_int(condition, 0) ? "then_branch" : "else_branch");
    if (!a || a->type != MDL_ATTR_BRANCH) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "a branch is missing");
    }
    if (a->branch->output_count != l->out_count) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "a branch has %zu outputs, the node %zu",
                             a->branch->output_count, l->out_count);
    }
    return l->branch(l, a->branch);
}

const struct mdl_lower_row mdl_lower_branches[] = {
    {"If", lower_if, 0},
    {0},
};
