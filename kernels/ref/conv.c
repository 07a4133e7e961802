/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and transposed convolutions. */
#include "kernels/ref/ref.h"
#include "kernels/table.h"

/*
 * A window op in one to three spatial dims, seen as three: missing outer dims are 1 long.
 * Index 0..2 = depth, height, width; 4-D element strides {n, c, d, h, w}.
 */
struct view5 {
    size_t n, c, dim[3];
    ptrdiff_t sn, sc, s[3];
};

static struct view5 view5_of(const struct mdl_tensor *t)
{
    struct view5 v = {.n = t->dim[0], .c = t->dim[1], .dim = {1, 1, 1}};
    size_t spatial = t->rank - 2;

    v.sn = t->stride[0];
    v.sc = t->stride[1];
    for (size_t i = 0; i < spatial; i++) {
        v.dim[3 - spatial + i] = t->dim[2 + i];
        v.s[3 - spatial + i] = t->stride[2 + i];
    }
    return v;
}

static struct mdl_window window3_of(const struct mdl_window *w)
{
    struct mdl_window r = {
        .rank = 3, .kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};

    for (size_t i = 0; i < w->rank; i++) {
        size_t to = 3 - w->rank + i;
        r.kernel[to] = w->kernel[i];
        r.stride[to] = w->stride[i];
        r.dilation[to] = w->dilation[i];
        r.pad_begin[to] = w->pad_begin[i];
        r.pad_end[to] = w->pad_end[i];
    }
    return r;
}

struct conv {
    struct view5 x, y, w, r; /* of w: n, c = its first two dims; r: residual, or y */
    struct mdl_window win;
    size_t groups;
    const struct mdl_tensor *bias; /* in[2], or NULL */
};

static struct conv conv_of(const struct krn_call *c)
{
    const struct mdl_op *op = c->op;
    struct conv v = {.x = view5_of(ref_in(c, 0)),
                     .w = view5_of(ref_in(c, 1)),
                     .y = view5_of(ref_out(c, 0)),
                     .win = window3_of(&op->attr.conv.window),
                     .groups = op->attr.conv.groups};

    v.r = view5_of(ref_residual(c));
    v.bias = op->in[2] == MDL_NONE ? NULL : ref_in(c, 2);
    return v;
}

/* scale, both biases, epilogue, store: the same for both directions */
static void conv_store(const struct krn_call *c, const struct conv *v, double sum, size_t n,
                       size_t o, const size_t at[3])
{
    const struct mdl_op *op = c->op;
    ptrdiff_t yi = (ptrdiff_t)n * v->y.sn + (ptrdiff_t)o * v->y.sc;
    ptrdiff_t ri = (ptrdiff_t)n * v->r.sn + (ptrdiff_t)o * v->r.sc;

    for (size_t d = 0; d < 3; d++) {
        yi += (ptrdiff_t)at[d] * v->y.s[d];
        ri += (ptrdiff_t)at[d] * v->r.s[d];
    }
    sum *= op->scale ? (double)op->scale[o] : 1;
    sum += op->shift ? (double)op->shift[o] : 0;
    sum += v->bias ? (double)ref_f32(c->in[2], (ptrdiff_t)o * v->bias->stride[0]) : 0;
    ref_set_f32(c->out[0], yi, ref_finish(c, sum, ri));
}

/* sum over one channel's window; the tap at kernel index k reads x at at * stride + k * dilation -
 * pad_begin */
static double conv_channel(const struct conv *v, const float *x, const float *w, const size_t at[3])
{
    const struct mdl_window *win = &v->win;
    double sum = 0;

    for (size_t kd = 0; kd < win->kernel[0]; kd++) {
        size_t id = at[0] * win->stride[0] + kd * win->dilation[0] - win->pad_begin[0];

        for (size_t kh = 0; id < v->x.dim[0] && kh < win->kernel[1]; kh++) {
            size_t ih = at[1] * win->stride[1] + kh * win->dilation[1] - win->pad_begin[1];

            for (size_t kw = 0; ih < v->x.dim[1] && kw < win->kernel[2]; kw++) {
                size_t iw = at[2] * win->stride[2] + kw * win->dilation[2] - win->pad_begin[2];

                if (iw < v->x.dim[2]) { /* below zero has wrapped to a huge number */
                    sum +=
                        (double)ref_f32(w, (ptrdiff_t)kd * v->w.s[0] + (ptrdiff_t)kh * v->w.s[1] +
                                               (ptrdiff_t)kw * v->w.s[2]) *
                        (double)ref_f32(x, (ptrdiff_t)id * v->x.s[0] + (ptrdiff_t)ih * v->x.s[1] +
                                               (ptrdiff_t)iw * v->x.s[2]);
                }
            }
        }
    }
    return sum;
}

/* Splits the number of a row of y. @ret_at: its first two spatial indices. Return: its channel. */
static size_t row_of(const struct conv *v, size_t row, size_t ret_at[3], size_t *ret_n)
{
    size_t rest = row / v->y.dim[1];

    ret_at[1] = row % v->y.dim[1];
    ret_at[0] = rest % v->y.dim[0];
    rest /= v->y.dim[0];
    *ret_n = rest / v->y.c;
    return rest % v->y.c;
}

/*
 * CONV  y[n,o,p] = finish( scale[o] sum_{c,k} w[o,c,k] x[n, g C/G + c, p s + k d - pad] + shift[o]
 *                          + bias[o] ),  g = o / (O/G); x is 0 outside        Source: ONNX Conv
 * @begin, @end: rows of y: n, o and the first two spatial dims together
 */
static void conv_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct conv v = conv_of(c);
    size_t per_group = v.y.c / v.groups;
    size_t at[3];

    for (size_t row = begin; row < end; row++) {
        size_t n, o = row_of(&v, row, at, &n);
        size_t first = o / per_group * v.w.c;

        for (at[2] = 0; at[2] < v.y.dim[2]; at[2]++) {
            double sum = 0;

            for (size_t ci = 0; ci < v.w.c; ci++) {
                const char *x = (const char *)c->in[0] +
                                ((ptrdiff_t)n * v.x.sn + (ptrdiff_t)(first + ci) * v.x.sc) * 4;
                const char *w =
                    (const char *)c->in[1] + ((ptrdiff_t)o * v.w.sn + (ptrdiff_t)ci * v.w.sc) * 4;
                sum += conv_channel(&v, (const float *)(const void *)x,
                                    (const float *)(const void *)w, at);
            }
            conv_store(c, &v, sum, n, o, at);
        }
    }
}

/* Rows of y for conv_body() and transpose_body(); 0 when y is empty. */
static size_t conv_rows(const struct krn_call *c)
{
    const struct mdl_tensor *y = ref_out(c, 0);
    size_t last = y->dim[y->rank - 1];

    return last ? mdl_elements(y) / last : 0;
}

static void conv_run(const struct krn_call *c)
{
    if (c->op->quant) {
        krn_ref_quant_run(c);
    } else {
        ref_share(c, conv_rows(c), conv_body);
    }
}

/*
 * CONV_TRANSPOSE  y[n,o,p] = finish( scale[o] sum_{c,k: i s + k d - pad = p} w[c,o',k] x[n,c,i] +
 *                            shift[o] + bias[o] ), c over the group of o      Source: ONNX
 * ConvTranspose. Gathered: for each y the taps that reach it. @begin, @end: as conv_body().
 */
static bool transpose_source(const struct conv *v, size_t d, size_t p, size_t k, size_t *ret_i)
{
    size_t reach = p + v->win.pad_begin[d], back = k * v->win.dilation[d];

    if (reach < back || (reach - back) % v->win.stride[d] != 0) {
        return false;
    }
    *ret_i = (reach - back) / v->win.stride[d];
    return *ret_i < v->x.dim[d];
}

static double transpose_channel(const struct conv *v, const char *x, const char *w,
                                const size_t at[3])
{
    const size_t *kernel = v->win.kernel;
    double sum = 0;
    size_t i[3];

    for (size_t kd = 0; kd < kernel[0]; kd++) {
        if (!transpose_source(v, 0, at[0], kd, &i[0])) {
            continue;
        }
        for (size_t kh = 0; kh < kernel[1]; kh++) {
            if (!transpose_source(v, 1, at[1], kh, &i[1])) {
                continue;
            }
            for (size_t kw = 0; kw < kernel[2]; kw++) {
                if (transpose_source(v, 2, at[2], kw, &i[2])) {
                    sum +=
                        (double)ref_f32(w, (ptrdiff_t)kd * v->w.s[0] + (ptrdiff_t)kh * v->w.s[1] +
                                               (ptrdiff_t)kw * v->w.s[2]) *
                        (double)ref_f32(x, (ptrdiff_t)i[0] * v->x.s[0] +
                                               (ptrdiff_t)i[1] * v->x.s[1] +
                                               (ptrdiff_t)i[2] * v->x.s[2]);
                }
            }
        }
    }
    return sum;
}

static void transpose_body(const struct krn_call *c, size_t begin, size_t end)
{
    const struct conv v = conv_of(c);
    size_t per_group = v.w.c, in_group = v.x.c / v.groups;
    size_t at[3];

    for (size_t row = begin; row < end; row++) {
        size_t n, o = row_of(&v, row, at, &n);
        size_t first = o / per_group * in_group;

        for (at[2] = 0; at[2] < v.y.dim[2]; at[2]++) {
            double sum = 0;

            for (size_t ci = first; ci < first + in_group; ci++) {
                const char *x =
                    (const char *)c->in[0] + ((ptrdiff_t)n * v.x.sn + (ptrdiff_t)ci * v.x.sc) * 4;
                const char *w = (const char *)c->in[1] +
                                ((ptrdiff_t)ci * v.w.sn + (ptrdiff_t)(o % per_group) * v.w.sc) * 4;
                sum += transpose_channel(&v, x, w, at);
            }
            conv_store(c, &v, sum, n, o, at);
        }
    }
}

static void transpose_run(const struct krn_call *c)
{
    ref_share(c, conv_rows(c), transpose_body);
}

static bool conv_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = &m->tensors[op->in[0]], *w = &m->tensors[op->in[1]];
    const struct mdl_tensor *y = &m->tensors[op->out[0]];
    size_t spatial = op->attr.conv.window.rank, groups = op->attr.conv.groups;
    bool forward = op->kind == MDL_OP_CONV;

    if (op->quant) {
        return krn_ref_quant_supports(m, op);
    }
    if (!ref_all_f32(m, op) || spatial < 1 || spatial > 3 || x->rank != spatial + 2 ||
        w->rank != x->rank || y->rank != x->rank || groups == 0 || !ref_epilogue_ok(m, op)) {
        return false;
    }
    for (size_t d = 0; d < spatial; d++) {
        if (op->attr.conv.window.kernel[d] != w->dim[2 + d] ||
            op->attr.conv.window.stride[d] == 0) {
            return false;
        }
    }
    if (op->in[2] != MDL_NONE) {
        const struct mdl_tensor *b = &m->tensors[op->in[2]];

        if (b->rank != 1 || b->dim[0] != y->dim[1]) {
            return false;
        }
    }
    if ((op->scale || op->shift) && op->channels != y->dim[1]) {
        return false;
    }
    return x->dim[0] == y->dim[0] && x->dim[1] % groups == 0 && y->dim[1] % groups == 0 &&
           (forward ? w->dim[0] == y->dim[1] && w->dim[1] * groups == x->dim[1]
                    : w->dim[0] == x->dim[1] && w->dim[1] * groups == y->dim[1]);
}

REF_PRIMITIVE(conv, MDL_OP_CONV, conv_supports, conv_run);

REF_PRIMITIVE(conv_transpose, MDL_OP_CONV_TRANSPOSE, conv_supports, transpose_run);
