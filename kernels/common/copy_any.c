/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COPY between any strides and PAD with a constant, without type conversion: runs of bytes if both
 * sides are dense, square tiles if input and output are contiguous along different dims (NCHW to
 * NHWC and back), element by element otherwise. Client buffers may have any alignment, so elements
 * move by memcpy.
 */
#include "kernels/common/layout.h"

#include "base/base.h"
#include "kernels/common/epilogue.h"
#include "kernels/common/nest.h"
#include "kernels/common/nhwc.h"
#include "kernels/common/planned.h"
#include "kernels/primitive.h"

#define TILE 16u

struct job {
    pthreadpool_t pool;
    const uint8_t *x;
    uint8_t *y;
    struct krn_nest nest;
    size_t size; /* bytes of an element; of all, where layouts are equal */
    size_t parts;
    size_t across; /* dim of the nest, not the row, along which x is dense; or none */
    float value;   /* PAD */
};

static bool copy_of(const struct mdl_tensor *y, const struct mdl_tensor *x, struct job *j)
{
    if (x->dtype != y->dtype ||
        !krn_nest_of((const struct mdl_tensor *const[]){y, x}, 2, &j->nest)) {
        return false;
    }
    j->size = mdl_dtype_bytes(x->dtype);
    j->across = MDL_NONE;
    for (size_t d = 0; d + 1 < j->nest.dims && krn_nest_inner(&j->nest, 1) != 1; d++) {
        if (j->nest.stride[1][d] == 1) {
            j->across = d;
        }
    }
    return true;
}

static bool copy_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    return krn_op_is_plain(op) && copy_of(&m->tensors[op->out[0]], &m->tensors[op->in[0]], &j);
}

static inline __attribute__((always_inline)) void
move(uint8_t *y, const uint8_t *x, size_t n, ptrdiff_t ys, ptrdiff_t xs, const size_t size)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(y, x, size);
        y += ys;
        x += xs;
    }
}

static void copy_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    ptrdiff_t size = (ptrdiff_t)j->size;
    ptrdiff_t ys = krn_nest_inner(&j->nest, 0) * size, xs = krn_nest_inner(&j->nest, 1) * size;
    uint8_t *y = j->y + at[0] * size;
    const uint8_t *x = j->x + at[1] * size;

    if (ys == size && xs == size) {
        memcpy(y, x, n * j->size);
    } else if (j->size == 4) {
        move(y, x, n, ys, xs, 4);
    } else if (j->size == 8) {
        move(y, x, n, ys, xs, 8);
    } else {
        move(y, x, n, ys, xs, 1);
    }
}

static void transpose_part(void *arg, size_t part)
{
    const struct job *j = arg;
    const struct krn_nest *n = &j->nest;
    struct krn_nest outer = *n; /* matrices */
    size_t across = n->dims - 2, last = n->dims - 1, matrices = 1;
    struct krn_range share;

    for (size_t d = 0; d < across; d++) {
        matrices *= n->dim[d];
    }
    /* parts share the rows of all matrices, in tiles */
    share = krn_share_run(matrices * n->dim[across], TILE, part, j->parts);
    for (size_t row = share.begin; row < share.end;) {
        size_t matrix = row / n->dim[across], first = row % n->dim[across];
        size_t now = base_min(share.end - row, n->dim[across] - first), left = matrix;
        ptrdiff_t yo = (ptrdiff_t)first * n->stride[0][across];
        ptrdiff_t xo = (ptrdiff_t)first * n->stride[1][across];

        for (size_t d = across; d-- > 0;) {
            yo += (ptrdiff_t)(left % outer.dim[d]) * n->stride[0][d];
            xo += (ptrdiff_t)(left % outer.dim[d]) * n->stride[1][d];
            left /= outer.dim[d];
        }
        krn_transpose_run(&(struct krn_transpose){.y = j->y + yo * 4,
                                                  .x = j->x + xo * 4,
                                                  .y_row = n->stride[0][across],
                                                  .x_column = n->stride[1][last],
                                                  .rows = now,
                                                  .columns = n->dim[last]});
        row += now;
    }
}

static void copy_start(struct job *j)
{
    if (j->across != MDL_NONE && j->size == 4 && krn_nest_inner(&j->nest, 0) == 1) {
        for (; j->across + 2 < j->nest.dims; j->across++) { /* just before the row: a matrix */
            krn_nest_swap(&j->nest, j->across, j->across + 1);
        }
        krn_parallel(j->pool, j->parts, transpose_part, j);
    } else {
        krn_nest_share(&j->nest, j->pool, j->parts, copy_row, j);
    }
}

/* Copies @x, whose element 0 is at @x_at, to @y of equal type and dims; nothing if a tensor is
 * empty or y overlaps itself. */
static void copy(const struct mdl_tensor *y, void *y_at, const struct mdl_tensor *x,
                 const void *x_at, pthreadpool_t pool, size_t width)
{
    struct job j = {.pool = pool, .parts = base_max(width, 1u), .x = x_at, .y = y_at};

    if (copy_of(y, x, &j)) {
        copy_start(&j);
    }
}

static void copy_run(const struct krn_call *call)
{
    const struct mdl_tensor *tensors = call->model->tensors;

    copy(&tensors[call->op->out[0]], call->out[0], &tensors[call->op->in[0]], call->in[0],
         call->pool, call->width);
}

size_t krn_nchw_bytes(const struct mdl_model *m, size_t t)
{
    const struct mdl_tensor *tensor = &m->tensors[t];

    return base_align_up(mdl_elements(tensor) * mdl_dtype_bytes(tensor->dtype), (size_t)64);
}

static struct mdl_tensor nchw_of(const struct mdl_tensor *t)
{
    struct mdl_tensor nchw = *t;
    ptrdiff_t next = 1;

    for (size_t d = t->rank; d-- > 0;) {
        nchw.stride[d] = next;
        next *= (ptrdiff_t)t->dim[d];
    }
    return nchw;
}

void krn_nchw_to(const struct mdl_model *m, size_t t, const void *value, void *nchw,
                 const struct krn_exec *exec)
{
    const struct mdl_tensor *x = &m->tensors[t], y = nchw_of(x);

    copy(&y, nchw, x, value, exec->pool, exec->width);
}

void krn_nchw_from(const struct mdl_model *m, size_t t, const void *nchw, void *value,
                   const struct krn_exec *exec)
{
    const struct mdl_tensor *y = &m->tensors[t], x = nchw_of(y);

    copy(y, value, &x, nchw, exec->pool, exec->width);
}

/* makes views of x and of the part of y that it covers */
static bool pad_views(const struct mdl_model *m, const struct mdl_op *op, struct mdl_tensor *x,
                      struct mdl_tensor *y, ptrdiff_t *ret_x, ptrdiff_t *ret_y)
{
    *ret_x = *ret_y = 0;
    *x = m->tensors[op->in[0]];
    *y = m->tensors[op->out[0]];
    for (size_t d = 0; d < x->rank; d++) {
        ptrdiff_t begin = op->attr.pad.begin[d];
        ptrdiff_t from = begin < 0 ? -begin : 0; /* first element of x that is kept */
        ptrdiff_t to = base_min((ptrdiff_t)x->dim[d], (ptrdiff_t)y->dim[d] - begin);

        if (to <= from) {
            return false;
        }
        *ret_x += from * x->stride[d];
        *ret_y += (from + begin) * y->stride[d];
        x->dim[d] = y->dim[d] = (size_t)(to - from);
    }
    return true;
}

static bool pad_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *y = &m->tensors[op->out[0]];
    struct krn_nest nest;

    if (op->attr.pad.mode != MDL_PAD_CONSTANT || x->dtype != MDL_F32 || y->dtype != MDL_F32 ||
        x->rank != y->rank || x->rank == 0 || !krn_op_is_plain(op) ||
        !krn_nest_of((const struct mdl_tensor *const[]){y}, 1, &nest)) {
        return false;
    }
    for (size_t d = 0; d < x->rank; d++) {
        if (x->dim[d] == 0 || (ptrdiff_t)y->dim[d] != (ptrdiff_t)x->dim[d] + op->attr.pad.begin[d] +
                                                          op->attr.pad.end[d]) {
            return false;
        }
    }
    return true;
}

static void fill_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    ptrdiff_t step = krn_nest_inner(&j->nest, 0) * 4;
    uint8_t *y = j->y + at[0] * 4;

    for (size_t i = 0; i < n; i++, y += step) {
        memcpy(y, &j->value, sizeof(j->value));
    }
}

static void pad_run(const struct krn_call *call)
{
    const struct mdl_tensor *whole = &call->model->tensors[call->op->out[0]];
    struct job j = {.pool = call->pool,
                    .y = call->out[0],
                    .parts = base_max(call->width, 1u),
                    .size = 4,
                    .across = MDL_NONE,
                    .value = (float)call->op->attr.pad.value};
    struct mdl_tensor x, y;
    ptrdiff_t x_at, y_at;

    if (!krn_nest_of((const struct mdl_tensor *const[]){whole}, 1, &j.nest)) {
        return;
    }
    krn_nest_share(&j.nest, j.pool, j.parts, fill_row, &j);
    if (pad_views(call->model, call->op, &x, &y, &x_at, &y_at) &&
        krn_nest_of((const struct mdl_tensor *const[]){&y, &x}, 2, &j.nest)) {
        j.x = (const uint8_t *)call->in[0] + x_at * 4;
        j.y = (uint8_t *)call->out[0] + y_at * 4;
        copy_start(&j);
    }
}

KRN_PRIMITIVE(copy_any__tiled, MDL_OP_COPY, .supports = copy_supports, .run = copy_run);

KRN_PRIMITIVE(pad_f32__tiled, MDL_OP_PAD, .supports = pad_supports, .run = pad_run);

/* Layout conversions from and to row-major tensors, such as a model's inputs and outputs: if the
 * other side stays NCHW, nothing changes, and bytes are copied as they are. */

/* @planes is an NCHW image, @other lies row-major */
static bool nchw_supports(const struct mdl_op *op, const struct mdl_tensor *planes,
                          const struct mdl_tensor *other)
{
    struct krn_img img;

    return krn_op_is_plain(op) && krn_img_of(planes, &img) && planes->rank == other->rank &&
           memcmp(planes->dim, other->dim, planes->rank * sizeof(planes->dim[0])) == 0 &&
           other->dtype == MDL_F32 && mdl_is_dense(other);
}

static bool to_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return nchw_supports(op, &m->tensors[op->out[0]], &m->tensors[op->in[0]]);
}

static bool from_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    return nchw_supports(op, &m->tensors[op->in[0]], &m->tensors[op->out[0]]);
}

static void bytes_part(void *arg, size_t part)
{
    const struct job *j = arg;
    struct krn_range r = krn_share_run(j->size, BASE_CACHE_LINE_BYTES, part, j->parts);

    memcpy(j->y + r.begin, j->x + r.begin, r.end - r.begin);
}

static void nchw_run(const struct krn_call *call)
{
    const struct mdl_tensor *t = &call->model->tensors[call->op->in[0]];
    struct job j = {.y = call->out[0],
                    .x = call->in[0],
                    .size = mdl_elements(t) * sizeof(float),
                    .parts = base_max(call->width, 1u)};

    krn_parallel(call->pool, j.parts, bytes_part, &j);
}

KRN_PRIMITIVE(copy_f32_to_nchw__any, MDL_OP_COPY, .nchw_out = true, .supports = to_supports,
              .run = nchw_run);

KRN_PRIMITIVE(copy_f32_from_nchw__any, MDL_OP_COPY, .nchw_in = true, .supports = from_supports,
              .run = nchw_run);
