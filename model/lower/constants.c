/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that make constants, or turn a shape into one. */
#include <math.h>

#include "model/lower/lowering.h"

static size_t int_const(struct mdl_lower *l, size_t rank, size_t count, const int64_t *values)
{
    void *data = mdl_ir_fold_alloc(l->ir, count * sizeof(*values));

    if (count) {
        memcpy(data, values, count * sizeof(*values));
    }
    return mdl_ir_const_new(l->ir, MDL_I64, rank, &count, data, false);
}

/* @v, of the narrow type of @t */
static size_t narrow_as(struct mdl_lower *l, size_t v, const struct mdl_gtensor *t)
{
    l->ir->values[v].narrow = t->narrow;
    return v;
}

static size_t lower_constant(struct mdl_lower *l, int arg)
{
    const struct mdl_gattr *a = l->node->attr_count ? &l->node->attrs[0] : NULL;
    void *data;

    mdl_bad_if(l, !a, "the constant has no value");
    switch (a->type) {
    case MDL_ATTR_TENSOR:
        return narrow_as(
            l,
            mdl_ir_const_new(l->ir, a->t->dtype, a->t->rank, a->t->dim, a->t->data, a->t->in_file),
            a->t);
    case MDL_ATTR_FLOAT:
        return mdl_ir_scalar(l->ir, MDL_F32, (double)a->f);
    case MDL_ATTR_INT:
        return int_const(l, 0, 1, &a->i);
    case MDL_ATTR_INTS:
        return int_const(l, 1, a->count, a->ints);
    case MDL_ATTR_FLOATS:
        data = mdl_ir_memdup(l->ir, a->floats, a->count * sizeof(float));
        return mdl_ir_const_new(l->ir, MDL_F32, 1, &a->count, data, false);
    default:
        mdl_l_refuse(l, -EOPNOTSUPP, "attribute %s is not supported", a->name);
    }
}

static size_t lower_constant_of_shape(struct mdl_lower *l, int arg)
{
    const struct mdl_gattr *a = mdl_l_attr(l, "value");
    const struct mdl_gtensor *t = a && a->type == MDL_ATTR_TENSOR ? a->t : NULL;
    enum mdl_dtype dtype = t ? t->dtype : MDL_F32;
    struct mdl_l_dims shape;
    size_t dim[MDL_RANK_MAX], y;
    void *data;

    mdl_l_dims(l, 0, &shape);
    for (size_t i = 0; i < shape.count; i++) {
        mdl_bad_if(l, shape.dim[i] < 0, "dimension %lld of the shape is negative",
                   (long long)shape.dim[i]);
        dim[i] = (size_t)shape.dim[i];
    }
    data = mdl_ir_fold_alloc(l->ir, 8);
    if (t) {
        mdl_bad_if(l, t->bytes != mdl_dtype_bytes(dtype), "attribute value must hold one element");
        memcpy(data, t->data, t->bytes);
    }
    y = mdl_ir_const_new(l->ir, dtype, 0, NULL, data, false);
    y = mdl_l_limit(l, mdl_ir_expand(l->ir, y, shape.count, dim), &shape);
    return t ? narrow_as(l, y, t) : y;
}

/* Integers of 16 bits, too. */
static void narrow_dtype(struct mdl_lower *l, const char *name, enum mdl_dtype fallback,
                         enum mdl_dtype *ret, enum mdl_narrow *ret_narrow)
{
    int64_t to = mdl_l_int(l, name, 0);
    const struct mdl_onnx_type *type = mdl_onnx_type(to);

    *ret = fallback;
    *ret_narrow = MDL_NARROW_NONE;
    if (!mdl_l_attr(l, name) && fallback != MDL_DTYPE_COUNT) {
        return;
    }
    mdl_unserved_if(l, !mdl_onnx_served(type), "element type %lld is not supported", (long long)to);
    *ret = type->dtype;
    *ret_narrow = type->narrow;
}

enum mdl_dtype mdl_l_dtype(struct mdl_lower *l, enum mdl_dtype fallback)
{
    enum mdl_narrow narrow;
    enum mdl_dtype dtype;

    narrow_dtype(l, "dtype", fallback, &dtype, &narrow);
    mdl_unserved_if(l, narrow != MDL_NARROW_NONE, "element type %s is not supported here",
                    mdl_narrow_name(narrow));
    return dtype;
}

static size_t lower_cast(struct mdl_lower *l, int arg)
{
    enum mdl_narrow narrow;
    enum mdl_dtype dtype;

    narrow_dtype(l, "to", MDL_DTYPE_COUNT, &dtype, &narrow);
    return mdl_narrow_cast(l, l->in[0], dtype, narrow);
}

/* A shape of which one element depends on the data. */
static size_t counted_shape(struct mdl_lower *l, struct mdl_ir_value x, size_t start, size_t end)
{
    size_t part[MDL_RANK_MAX];

    for (size_t i = start; i < end; i++) {
        part[i - start] =
            i == x.rows_dim ? x.rows : int_const(l, 1, 1, &(int64_t){(int64_t)x.dim[i]});
    }
    return mdl_ir_concat(l->ir, part, end - start, 0);
}

static size_t lower_shape(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x = mdl_l_value(l, l->in[0]);
    int64_t values[MDL_RANK_MAX], rank = (int64_t)x->rank;
    int64_t start = mdl_l_int(l, "start", 0), end = mdl_l_int(l, "end", rank);

    start = base_max(base_min(start < 0 ? start + rank : start, rank), (int64_t)0);
    end = base_max(base_min(end < 0 ? end + rank : end, rank), start);
    if (x->rows != MDL_NONE && (int64_t)x->rows_dim >= start && (int64_t)x->rows_dim < end) {
        return counted_shape(l, *x, (size_t)start, (size_t)end);
    }
    for (int64_t i = start; i < end; i++) {
        values[i - start] = (int64_t)x->dim[i];
    }
    return int_const(l, 1, (size_t)(end - start), values);
}

static size_t lower_size(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x = *mdl_l_value(l, l->in[0]);
    int64_t n = (int64_t)mdl_ir_elements(&x);
    size_t product = x.rows;

    if (x.rows == MDL_NONE || n == 0) {
        return int_const(l, 0, 1, &n);
    }
    n /= (int64_t)x.dim[x.rows_dim]; /* the count times the other dims */
    if (n != 1) {
        product = mdl_ir_binary(l->ir, MDL_BIN_MUL, x.rows, int_const(l, 1, 1, &n));
    }
    return mdl_ir_reshape(l->ir, product, 0, NULL);
}

size_t mdl_lower_count_to(struct mdl_lower *l, size_t n)
{
    size_t bytes;
    int64_t *value;

    mdl_large_if(l, !base_mul(n, sizeof(*value), &bytes), "%zu positions are too many", n);
    value = mdl_ir_fold_alloc(l->ir, bytes);
    for (size_t i = 0; i < n; i++) {
        value[i] = (int64_t)i;
    }
    return mdl_ir_const_new(l->ir, MDL_I64, 1, &n, value, false);
}

/* From 0 to a length that depends on the data: so many of all that there may be. */
static size_t counted_range(struct mdl_lower *l)
{
    size_t limit = mdl_ir_reshape(l->ir, l->in[1], 1, (size_t[]){1}), rows, y;
    int64_t most;

    mdl_rows_dim(l->ir, limit, 0, &most, &rows);
    mdl_bad_if(l, most < 0 || most > INT32_MAX, "the range has too many elements");
    y = mdl_lower_count_to(l, (size_t)most);
    if (rows != MDL_NONE) {
        mdl_rows_set(l->ir, y, 0, rows);
    }
    return y;
}

/* Return: whether constant input @i is @value. */
static bool is_int(const struct mdl_lower *l, size_t i, int64_t value)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

    return v->data && v->dtype == MDL_I64 && mdl_ir_elements(v) == 1 &&
           mdl_const_int(v, 0) == value;
}

static size_t lower_range(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *v[3] = {mdl_l_value(l, l->in[0]), mdl_l_value(l, l->in[1]),
                                       mdl_l_value(l, l->in[2])};
    enum mdl_dtype dtype = v[0]->dtype;
    double count;
    size_t n;
    void *data;

    if (is_int(l, 0, 0) && is_int(l, 2, 1) && !v[1]->data && mdl_ir_elements(v[1]) == 1) {
        return counted_range(l);
    }
    for (size_t i = 0; i < 3; i++) {
        mdl_unserved_if(l, !v[i]->data || mdl_ir_elements(v[i]) != 1 || v[i]->dtype != dtype,
                        "input %zu must be a constant scalar", i);
    }
    count = ceil((mdl_const_real(v[1], 0) - mdl_const_real(v[0], 0)) / mdl_const_real(v[2], 0));
    mdl_bad_if(l, !(count == count) || count > (double)INT32_MAX,
               "the range is empty or has too many elements");
    n = count > 0 ? (size_t)count : 0;
    data = mdl_ir_fold_alloc(l->ir, n * mdl_dtype_bytes(dtype));
    for (size_t i = 0; i < n; i++) {
        mdl_const_store(data, dtype, i,
                        mdl_const_real(v[0], 0) + (double)i * mdl_const_real(v[2], 0),
                        (int64_t)((uint64_t)mdl_const_int(v[0], 0) +
                                  (uint64_t)i * (uint64_t)mdl_const_int(v[2], 0)));
    }
    return mdl_ir_const_new(l->ir, dtype, 1, &n, data, false);
}

const struct mdl_lower_row mdl_lower_consts[] = {
    {"Constant", lower_constant, 0},
    {"ConstantOfShape", lower_constant_of_shape, 1, .narrow = MDL_NARROW_OWN},
    {"Cast", lower_cast, 1, .narrow = MDL_NARROW_OWN},
    {"Shape", lower_shape, 1},
    {"Size", lower_size, 1},
    {"Range", lower_range, 3, .narrow = MDL_NARROW_WRAPS},
    {0},
};
