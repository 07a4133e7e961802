/* SPDX-License-Identifier: Apache-2.0 */
/* What lowering reads of a node: inputs, attributes, constants. */
#include "model/lower/lowering.h"

size_t mdl_l_in(const struct mdl_lower *l, size_t i)
{
    return i < l->in_count ? l->in[i] : MDL_NONE;
}

const struct mdl_ir_value *mdl_l_value(const struct mdl_lower *l, size_t v)
{
    return mdl_ir_at(l->ir, v);
}

bool mdl_l_wants(const struct mdl_lower *l, size_t i)
{
    return i < l->out_count && l->node->outputs[i][0];
}

void mdl_l_give(struct mdl_lower *l, size_t i, size_t v)
{
    if (i < l->out_count) {
        l->out[i] = v;
    }
}

struct mdl_ir_op mdl_l_op(const struct mdl_lower *l, int kind, size_t count)
{
    struct mdl_ir_op op = mdl_ir_op_make(l->ir, kind);

    for (size_t i = 0; i < count; i++) {
        op.op.in[i] = mdl_l_in(l, i);
    }
    return op;
}

void mdl_l_run(struct mdl_lower *l, const struct mdl_lower_row *row)
{
    size_t all = base_max(l->in_count, (size_t)1), y;

    mdl_l_need(l, row->needs == MDL_LOWER_ALL ? all : row->needs, row->spared);
    for (size_t i = 0; i < row->floats; i++) {
        mdl_l_f32(l, i);
    }
    y = row->fn(l, row->arg); /* which may set the first output, too */
    l->out[0] = y;
}

void mdl_l_need(struct mdl_lower *l, size_t count, unsigned spared)
{
    for (size_t i = 0; i < count; i++) {
        bool may_lack = i < 32 && spared >> i & 1;

        mdl_bad_if(l, mdl_l_in(l, i) == MDL_NONE && !may_lack, "input %zu is missing", i);
    }
    mdl_bad_if(l, l->out_count == 0, "the node has no output");
}

void mdl_l_f32(struct mdl_lower *l, size_t i)
{
    size_t v = mdl_l_in(l, i);

    mdl_unserved_if(l, v != MDL_NONE && l->ir->values[v].dtype != MDL_F32,
                    "input %zu of type %s is not supported", i,
                    mdl_dtype_name(l->ir->values[v].dtype));
}

const struct mdl_gattr *mdl_l_attr(const struct mdl_lower *l, const char *name)
{
    for (size_t i = 0; i < l->node->attr_count; i++) {
        if (strcmp(l->node->attrs[i].name, name) == 0) {
            return &l->node->attrs[i];
        }
    }
    return NULL;
}

const struct mdl_gattr *mdl_l_typed(struct mdl_lower *l, const char *name, enum mdl_attr_type type)
{
    const struct mdl_gattr *a = mdl_l_attr(l, name);

    mdl_bad_if(l, a && a->type != type, "attribute %s has the wrong type", name);
    return a;
}

int64_t mdl_l_int(struct mdl_lower *l, const char *name, int64_t fallback)
{
    const struct mdl_gattr *a = mdl_l_typed(l, name, MDL_ATTR_INT);

    return a ? a->i : fallback;
}

float mdl_l_float(struct mdl_lower *l, const char *name, float fallback)
{
    const struct mdl_gattr *a = mdl_l_typed(l, name, MDL_ATTR_FLOAT);

    return a ? a->f : fallback;
}

const char *mdl_l_string(struct mdl_lower *l, const char *name, const char *fallback)
{
    const struct mdl_gattr *a = mdl_l_typed(l, name, MDL_ATTR_STRING);

    return a ? a->s : fallback;
}

int mdl_l_word(struct mdl_lower *l, const char *name, const char *fallback,
               const struct mdl_l_word *words)
{
    const char *s = mdl_l_string(l, name, fallback);

    for (const struct mdl_l_word *w = words; w->name; w++) {
        if (strcmp(w->name, s) == 0) {
            return w->value;
        }
    }
    mdl_l_refuse(l, -EOPNOTSUPP, "%s %s is not supported", name, s);
}

bool mdl_l_ints(struct mdl_lower *l, const char *name, int64_t *dst, size_t max, size_t *ret_count)
{
    const struct mdl_gattr *a = mdl_l_typed(l, name, MDL_ATTR_INTS);

    *ret_count = 0;
    if (!a) {
        return false;
    }
    mdl_bad_if(l, a->count > max, "attribute %s has %zu values, at most %zu fit", name, a->count,
               max);
    for (size_t i = 0; i < a->count; i++) {
        dst[i] = a->ints[i];
    }
    *ret_count = a->count;
    return true;
}

bool mdl_l_const_ints(struct mdl_lower *l, size_t i, int64_t *dst, size_t max, size_t *ret_count)
{
    size_t v = mdl_l_in(l, i);
    const struct mdl_ir_value *x;

    *ret_count = 0;
    if (v == MDL_NONE) {
        return false;
    }
    x = &l->ir->values[v];
    mdl_unserved_if(l, !x->data, "input %zu (\"%s\") must be a constant", i, x->name);
    mdl_bad_if(l, x->dtype != MDL_I64 && x->dtype != MDL_I32,
               "input %zu is of type %s; it must be an integer", i, mdl_dtype_name(x->dtype));
    mdl_bad_if(l, x->rank > 1, "input %zu has rank %zu; it must be a list", i, x->rank);
    mdl_bad_if(l, mdl_ir_elements(x) > max, "input %zu has %zu values, at most %zu fit", i,
               mdl_ir_elements(x), max);
    *ret_count = mdl_ir_elements(x);
    for (size_t k = 0; k < *ret_count; k++) {
        dst[k] = mdl_const_int(x, k);
    }
    return true;
}

void mdl_l_dims(struct mdl_lower *l, size_t i, struct mdl_l_dims *ret)
{
    size_t v = mdl_l_in(l, i), rows;
    const struct mdl_ir_value *x = v == MDL_NONE ? NULL : mdl_l_value(l, v);

    *ret = (struct mdl_l_dims){.rows = MDL_NONE};
    if (!x || x->most == MDL_NONE || x->rank > 1 || mdl_ir_elements(x) > MDL_RANK_MAX) {
        mdl_l_const_ints(l, i, ret->dim, MDL_RANK_MAX, &ret->count);
        return;
    }
    ret->count = mdl_ir_elements(x);
    for (size_t k = 0; k < ret->count; k++) {
        mdl_rows_dim(l->ir, v, k, &ret->dim[k], &rows);
        mdl_unserved_if(l, rows != MDL_NONE && ret->rows != MDL_NONE,
                        "two dimensions depend on the data");
        ret->rows_at = rows == MDL_NONE ? ret->rows_at : k;
        ret->rows = rows == MDL_NONE ? ret->rows : rows;
    }
}

size_t mdl_l_limit(struct mdl_lower *l, size_t y, const struct mdl_l_dims *d)
{
    if (d->rows == MDL_NONE) {
        return y;
    }
    y = mdl_rows_alias(l->ir, y);
    return mdl_rows_limit(l->ir, y, mdl_l_value(l, y)->rank - d->count + d->rows_at, d->rows);
}

bool mdl_l_const_float(struct mdl_lower *l, size_t i, float *ret)
{
    const struct mdl_ir_value *x = mdl_l_value(l, mdl_l_in(l, i));

    if (!x->data || mdl_ir_elements(x) != 1) {
        return false;
    }
    *ret = (float)mdl_const_real(x, 0);
    return true;
}

size_t mdl_l_axis(struct mdl_lower *l, int64_t axis, size_t rank, bool past_end)
{
    int64_t n = (int64_t)rank;

    mdl_bad_if(l, axis < -n || axis >= n + (past_end ? 1 : 0), "axis %lld is outside rank %zu",
               (long long)axis, rank);
    return (size_t)(axis < 0 ? axis + n : axis);
}

void mdl_l_marked(struct mdl_lower *l, const int64_t *axes, size_t count, size_t rank, bool *mark)
{
    memset(mark, 0, MDL_RANK_MAX * sizeof(*mark));
    for (size_t i = 0; i < count; i++) {
        mark[mdl_l_axis(l, axes[i], rank, false)] = true;
    }
}

size_t mdl_lower_as(struct mdl_lower *l, const char *op_type, const struct mdl_lower_values *v)
{
    const struct mdl_lower_row *row = l->find(op_type);
    struct mdl_lower as = *l;

    mdl_unserved_if(l, !row, "operator %s is not supported", op_type);
    as.opset = v->opset;
    as.in = v->in;
    as.in_count = v->in_count;
    as.out = v->out;
    as.out_count = v->out_count;
    for (size_t i = 0; i < v->out_count; i++) {
        v->out[i] = MDL_NONE;
    }
    mdl_l_run(&as, row);
    return v->out[0];
}
