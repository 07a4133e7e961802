/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/base.h"
#include "model/ir/rows.h"
#include "model/lower/narrow.h"

/* Operators that make constants, or turn a shape into one. */

static int int_const(struct mdl_lower *l, size_t rank, size_t count, const int64_t *values)
{
    void *data;
    int r = mdl_ir_fold_alloc(l->ir, count * sizeof(*values), &data);

    if (r < 0) {
        return r;
    }
    if (count) {
        memcpy(data, values, count * sizeof(*values));
    }
    return mdl_ir_const_new(l->ir, MDL_I64, rank, &count, data, false, &l->out[0]);
}

static int lower_constant(struct mdl_lower *l, int arg)
{
    const struct mdl_gattr *a = l->node->attr_count ? &l->node->attrs[0] : NULL;
    int r = mdl_l_need(l, 0);

    if (r < 0) {
        return r;
    }
    if (!a) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the constant has no value");
    }
    switch (a->type) {
    case MDL_ATTR_TENSOR:
        r = mdl_ir_const_new(l->ir, a->t->dtype, a->t->rank, a->t->dim, a->t->data, a->t->in_file,
                             &l->out[0]);
        if (r == 0) {
            l->ir->values[l->out[0]].narrow = a->t->narrow;
        }
        return r;
    case MDL_ATTR_FLOAT:
        return mdl_ir_scalar(l->ir, MDL_F32, (double)a->f, &l->out[0]);
    case MDL_ATTR_INT:
        return int_const(l, 0, 1, &a->i);
    case MDL_ATTR_INTS:
        return int_const(l, 1, a->count, a->ints);
    case MDL_ATTR_FLOATS: {
        void *data = mdl_pool_memdup(l->ir->pool, a->floats, a->count * sizeof(float));

        return data ? mdl_ir_const_new(l->ir, MDL_F32, 1, &a->count, data, false, &l->out[0])
                    : mdl_ir_nomem(l->ir);
    }
    default:
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "attribute %s is not supported", a->name);
    }
}

static int lower_constant_of_shape(struct mdl_lower *l, int arg)
{
    const struct mdl_gattr *a = mdl_l_attr(l, "value");
    enum mdl_dtype dtype = a && a->type == MDL_ATTR_TENSOR ? a->t->dtype : MDL_F32;
    struct mdl_l_dims shape;
    size_t dim[MDL_RANK_MAX], one;
    void *data;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : mdl_l_dims(l, 0, &shape);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < shape.count; i++) {
        if (shape.dim[i] < 0) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "dimension %lld of the shape is negative",
                                 (long long)shape.dim[i]);
        }
        dim[i] = (size_t)shape.dim[i];
    }
    r = mdl_ir_fold_alloc(l->ir, 8, &data);
    if (r < 0) {
        return r;
    }
    if (a && a->type == MDL_ATTR_TENSOR) {
        if (a->t->bytes != mdl_dtype_bytes(dtype)) {
            return mdl_ir_refuse(l->ir, -EBADMSG, "attribute value must hold one element");
        }
        memcpy(data, a->t->data, a->t->bytes);
    }
    r = mdl_ir_const_new(l->ir, dtype, 0, NULL, data, false, &one);
    r = r < 0 ? r : mdl_ir_expand(l->ir, one, shape.count, dim, &l->out[0]);
    r = r < 0 ? r : mdl_l_limit(l, &shape);
    if (r == 0 && a && a->type == MDL_ATTR_TENSOR) {
        l->ir->values[l->out[0]].narrow = a->t->narrow;
    }
    return r;
}

/* ONNX's numbers of element types */
static int onnx_dtype(int64_t onnx, enum mdl_dtype *ret, enum mdl_narrow *ret_narrow)
{
    *ret_narrow = onnx == 4 ? MDL_NARROW_U16 : onnx == 5 ? MDL_NARROW_I16 : MDL_NARROW_NONE;
    switch (onnx) {
    case 1:  /* float */
    case 10: /* float16, bfloat16 and double: held as float here */
    case 11:
    case 16:
        *ret = MDL_F32;
        return 0;
    case 2:
        *ret = MDL_U8;
        return 0;
    case 3:
        *ret = MDL_I8;
        return 0;
    case 4: /* uint16 and int16: in 32 bits here */
    case 5:
    case 6:
        *ret = MDL_I32;
        return 0;
    case 7:
        *ret = MDL_I64;
        return 0;
    case 9:
        *ret = MDL_BOOL;
        return 0;
    default:
        return -EOPNOTSUPP;
    }
}

/* Integers of 16 bits, too. */
static int narrow_dtype(struct mdl_lower *l, const char *name, enum mdl_dtype fallback,
                        enum mdl_dtype *ret, enum mdl_narrow *ret_narrow)
{
    int64_t to = mdl_l_int(l, name, 0);

    *ret = fallback;
    *ret_narrow = MDL_NARROW_NONE;
    if (l->error < 0 || (!mdl_l_attr(l, name) && fallback != MDL_DTYPE_COUNT)) {
        return l->error;
    }
    if (onnx_dtype(to, ret, ret_narrow) < 0) {
        return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "element type %lld is not supported",
                             (long long)to);
    }
    return 0;
}

int mdl_l_dtype(struct mdl_lower *l, const char *name, enum mdl_dtype fallback, enum mdl_dtype *ret)
{
    enum mdl_narrow narrow;
    int r = narrow_dtype(l, name, fallback, ret, &narrow);

    return r < 0 || narrow == MDL_NARROW_NONE
               ? r
               : mdl_ir_refuse(l->ir, -EOPNOTSUPP, "element type %s is not supported here",
                               mdl_narrow_name(narrow));
}

static int lower_cast(struct mdl_lower *l, int arg)
{
    enum mdl_narrow narrow;
    enum mdl_dtype dtype;
    int r = mdl_l_need(l, 1);

    r = r < 0 ? r : narrow_dtype(l, "to", MDL_DTYPE_COUNT, &dtype, &narrow);
    return r < 0 ? r : mdl_narrow_cast(l, l->in[0], dtype, narrow, &l->out[0]);
}

/* A shape of which one element depends on the data. */
static int counted_shape(struct mdl_lower *l, const struct mdl_ir_value *x, size_t start,
                         size_t end)
{
    size_t part[MDL_RANK_MAX];
    int r = 0;

    for (size_t i = start; i < end && r == 0; i++) {
        int64_t dim = (int64_t)x->dim[i];

        r = int_const(l, 1, 1, &dim);
        part[i - start] = i == x->rows_dim ? x->rows : l->out[0];
    }
    return r < 0 ? r : mdl_ir_concat(l->ir, part, end - start, 0, &l->out[0]);
}

static int lower_shape(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *x;
    int64_t values[MDL_RANK_MAX], start, end;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = mdl_l_value(l, l->in[0]);
    start = mdl_l_int(l, "start", 0);
    end = mdl_l_int(l, "end", (int64_t)x->rank);
    start = start < 0 ? start + (int64_t)x->rank : start;
    end = end < 0 ? end + (int64_t)x->rank : end;
    start = base_max(base_min(start, (int64_t)x->rank), (int64_t)0);
    end = base_max(base_min(end, (int64_t)x->rank), start);
    if (x->rows != MDL_NONE && (int64_t)x->rows_dim >= start && (int64_t)x->rows_dim < end) {
        struct mdl_ir_value counted = *x;

        return counted_shape(l, &counted, (size_t)start, (size_t)end);
    }
    for (int64_t i = start; i < end; i++) {
        values[i - start] = (int64_t)x->dim[i];
    }
    return int_const(l, 1, (size_t)(end - start), values);
}

static int lower_size(struct mdl_lower *l, int arg)
{
    struct mdl_ir_value x;
    size_t product;
    int64_t n;
    int r = mdl_l_need(l, 1);

    if (r < 0) {
        return r;
    }
    x = *mdl_l_value(l, l->in[0]);
    n = (int64_t)mdl_ir_elements(&x);
    if (x.rows != MDL_NONE && n > 0) { /* the count times the other dims */
        n /= (int64_t)x.dim[x.rows_dim];
        product = x.rows;
        r = n == 1 ? 0 : int_const(l, 1, 1, &n);
        r = r < 0 || n == 1 ? r : mdl_ir_binary(l->ir, MDL_BIN_MUL, x.rows, l->out[0], &product);
        return r < 0 ? r : mdl_ir_reshape(l->ir, product, 0, NULL, &l->out[0]);
    }
    return int_const(l, 0, 1, &n);
}

/* From 0 to a length that depends on the data: so many of all that there may be. */
static int counted_range(struct mdl_lower *l)
{
    size_t limit = l->in[1], n, one = 1;
    void *data;
    int64_t most;
    size_t rows;
    int r = mdl_ir_reshape(l->ir, limit, 1, &one, &limit);

    r = r < 0 ? r : mdl_rows_dim(l->ir, limit, 0, &most, &rows);
    if (r < 0 || most < 0 || most > INT32_MAX) {
        return r < 0 ? r : mdl_ir_refuse(l->ir, -EBADMSG, "the range has too many elements");
    }
    n = (size_t)most;
    r = mdl_ir_fold_alloc(l->ir, n * sizeof(int64_t), &data);
    for (size_t i = 0; r == 0 && i < n; i++) {
        mdl_const_store(data, MDL_I64, i, 0, (int64_t)i);
    }
    r = r < 0 ? r : mdl_ir_const_new(l->ir, MDL_I64, 1, &n, data, false, &l->out[0]);
    return r < 0 || rows == MDL_NONE ? r : mdl_rows_set(l->ir, l->out[0], 0, rows);
}

/* Return: whether constant input @i is @value. */
static bool is_int(const struct mdl_lower *l, size_t i, int64_t value)
{
    const struct mdl_ir_value *v = mdl_l_value(l, l->in[i]);

    return v->data && v->dtype == MDL_I64 && mdl_ir_elements(v) == 1 &&
           mdl_const_int(v, 0) == value;
}

static int lower_range(struct mdl_lower *l, int arg)
{
    const struct mdl_ir_value *v[3];
    double count;
    enum mdl_dtype dtype;
    size_t n;
    void *data;
    int r = mdl_l_need(l, 3);

    if (r < 0) {
        return r;
    }
    if (is_int(l, 0, 0) && is_int(l, 2, 1) && !mdl_l_value(l, l->in[1])->data &&
        mdl_ir_elements(mdl_l_value(l, l->in[1])) == 1) {
        return counted_range(l);
    }
    for (size_t i = 0; i < 3; i++) {
        v[i] = mdl_l_value(l, l->in[i]);
        if (!v[i]->data || mdl_ir_elements(v[i]) != 1 || v[i]->dtype != v[0]->dtype) {
            return mdl_ir_refuse(l->ir, -EOPNOTSUPP, "input %zu must be a constant scalar", i);
        }
    }
    dtype = v[0]->dtype;
    count = ceil((mdl_const_real(v[1], 0) - mdl_const_real(v[0], 0)) / mdl_const_real(v[2], 0));
    if (!(count == count) || count > (double)INT32_MAX) {
        return mdl_ir_refuse(l->ir, -EBADMSG, "the range is empty or has too many elements");
    }
    n = count > 0 ? (size_t)count : 0;
    r = mdl_ir_fold_alloc(l->ir, n * mdl_dtype_bytes(dtype), &data);
    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < n; i++) {
        mdl_const_store(data, dtype, i,
                        mdl_const_real(v[0], 0) + (double)i * mdl_const_real(v[2], 0),
                        (int64_t)((uint64_t)mdl_const_int(v[0], 0) +
                                  (uint64_t)i * (uint64_t)mdl_const_int(v[2], 0)));
    }
    return mdl_ir_const_new(l->ir, dtype, 1, &n, data, false, &l->out[0]);
}

const struct mdl_lower_row mdl_lower_consts[] = {
    {"Constant", lower_constant, 0},
    {"ConstantOfShape", lower_constant_of_shape, 0, .narrows = true},
    {"Cast", lower_cast, 0, .narrows = true},
    {"Shape", lower_shape, 0},
    {"Size", lower_size, 0},
    {"Range", lower_range, 0},
    {0},
};
