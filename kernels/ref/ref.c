/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/ref/ref.h"

#include <math.h>

#include "kernels/common/parallel.h"

int64_t ref_lowest(enum mdl_dtype t)
{
    return t == MDL_I64 ? INT64_MIN : t == MDL_I32 ? INT32_MIN : t == MDL_I8 ? INT8_MIN : 0;
}

int64_t ref_highest(enum mdl_dtype t)
{
    return t == MDL_I64   ? INT64_MAX
           : t == MDL_I32 ? INT32_MAX
           : t == MDL_I8  ? INT8_MAX
           : t == MDL_U8  ? UINT8_MAX
                          : 1;
}

void ref_set_f64(void *p, enum mdl_dtype t, ptrdiff_t i, double v)
{
    int64_t low = ref_lowest(t), high = ref_highest(t);

    if (t == MDL_F32) {
        ref_set_f32(p, i, v);
    } else if (t == MDL_BOOL) {
        ref_set_i64(p, t, i, v != 0);
    } else {
        ref_set_i64(p, t, i,
                    isnan(v)            ? 0
                    : v <= (double)low  ? low
                    : v >= (double)high ? high
                                        : (int64_t)v);
    }
}

void ref_walk_start(struct ref_walk *w, const struct mdl_tensor *shape, size_t linear)
{
    w->rank = shape->rank;
    w->operands = 0;
    for (size_t d = shape->rank; d-- > 0;) {
        w->dim[d] = shape->dim[d];
        w->index[d] = shape->dim[d] ? linear % shape->dim[d] : 0;
        linear = shape->dim[d] ? linear / shape->dim[d] : 0;
    }
}

void ref_walk_add(struct ref_walk *w, const struct mdl_tensor *t)
{
    size_t k = w->operands++;

    w->at[k] = 0;
    for (size_t d = 0; d < w->rank; d++) {
        size_t missing = w->rank - base_min(w->rank, t->rank);
        bool repeated = d < missing || t->dim[d - missing] == 1;

        w->stride[k][d] = repeated ? 0 : t->stride[d - missing];
        w->at[k] += (ptrdiff_t)w->index[d] * w->stride[k][d];
    }
}

void ref_walk_call(struct ref_walk *w, const struct krn_call *c, size_t inputs, size_t linear)
{
    size_t residual = c->op->residual == MDL_RESIDUAL_NONE ? MDL_NONE : c->op->residual_in;

    *w = (struct ref_walk){0};
    ref_walk_start(w, ref_out(c, 0), linear);
    ref_walk_add(w, ref_out(c, 0));
    for (size_t i = 0; i <= inputs; i++) {
        size_t t = i < inputs ? c->op->in[i] : residual;

        if (t != MDL_NONE) {
            w->operands = i + 1;
            ref_walk_add(w, &c->model->tensors[t]);
        }
    }
}

struct share_job {
    const struct krn_call *c;
    ref_body_fn *body;
    size_t n, parts;
};

static void share_part(void *arg, size_t part)
{
    const struct share_job *job = arg;
    struct krn_range r = krn_share(job->n, 1, part, job->parts);

    if (r.begin < r.end) {
        job->body(job->c, r.begin, r.end);
    }
}

void ref_share(const struct krn_call *c, size_t n, ref_body_fn *body)
{
    struct share_job job = {.c = c, .body = body, .n = n};

    if (n == 0) {
        return;
    }
    job.parts = base_min(n, c->width ? c->width : 1);
    krn_parallel(c->pool, job.parts, share_part, &job);
}

static double clamp01(double x)
{
    return x < 0 ? 0 : x > 1 ? 1 : x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

double ref_act(enum mdl_act act, double a, double b, double x)
{
    switch (act) {
    case MDL_ACT_NONE:
    case MDL_ACT_COUNT:
        return x;
    case MDL_ACT_RELU:
        return x < 0 ? 0 : x;
    case MDL_ACT_CLIP:
        x = x < a ? a : x;
        return x > b ? b : x;
    case MDL_ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case MDL_ACT_SIGMOID:
        return sigmoid(x);
    case MDL_ACT_HARD_SIGMOID:
        return clamp01(a * x + b);
    case MDL_ACT_HARD_SWISH:
        return x * clamp01(x / 6 + 0.5);
    case MDL_ACT_SILU:
        return x * sigmoid(x);
    case MDL_ACT_TANH:
        return tanh(x);
    case MDL_ACT_ELU:
        return x < 0 ? a * expm1(x) : x;
    case MDL_ACT_SWISH:
        return x * sigmoid(a * x);
    case MDL_ACT_MISH:
        return x * tanh(x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)));
    case MDL_ACT_GELU:
        return x * 0.5 * erfc(x * -0.70710678118654752440);
    case MDL_ACT_GELU_TANH:
        return x * sigmoid(1.59576912160573071176 * (x + 0.044715 * x * x * x));
    case MDL_ACT_SOFTPLUS:
        return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    case MDL_ACT_SELU:
        return b * (x > 0 ? x : a * expm1(x));
    case MDL_ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    case MDL_ACT_EXP:
        return exp(x);
    case MDL_ACT_LOG:
        return log(x);
    case MDL_ACT_SQRT:
        return sqrt(x);
    case MDL_ACT_RECIPROCAL:
        return 1 / x;
    case MDL_ACT_NEG:
        return -x;
    case MDL_ACT_ABS:
        return fabs(x);
    case MDL_ACT_FLOOR:
        return floor(x);
    case MDL_ACT_CEIL:
        return ceil(x);
    case MDL_ACT_ROUND:
        return nearbyint(x); /* ties to even, the default rounding mode */
    case MDL_ACT_SIGN:
        return x > 0 ? 1 : x < 0 ? -1 : x;
    case MDL_ACT_ERF:
        return erf(x);
    case MDL_ACT_SIN:
        return sin(x);
    case MDL_ACT_COS:
        return cos(x);
    case MDL_ACT_TAN:
        return tan(x);
    case MDL_ACT_ASIN:
        return asin(x);
    case MDL_ACT_ACOS:
        return acos(x);
    case MDL_ACT_ATAN:
        return atan(x);
    case MDL_ACT_SINH:
        return sinh(x);
    case MDL_ACT_COSH:
        return cosh(x);
    case MDL_ACT_ASINH:
        return asinh(x);
    case MDL_ACT_ACOSH:
        return acosh(x);
    case MDL_ACT_ATANH:
        return atanh(x);
    case MDL_ACT_THRESHOLDED_RELU:
        return x <= a ? 0 : x;
    case MDL_ACT_SHRINK:
        return x < -a ? x + b : x > a ? x - b : isnan(x) ? x : 0;
    case MDL_ACT_NOT:
        return x == 0;
    case MDL_ACT_BIT_NOT: /* integers only */
        return x;
    }
    return x;
}

bool ref_plain(const struct mdl_op *op)
{
    return op->act == MDL_ACT_NONE && op->residual == MDL_RESIDUAL_NONE;
}

bool ref_epilogue_ok(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = &m->tensors[op->out[0]];

    if (ref_plain(op)) {
        return true;
    }
    if (y->dtype != MDL_F32) {
        return false;
    }
    return op->residual == MDL_RESIDUAL_NONE ||
           (m->tensors[op->residual_in].dtype == MDL_F32 &&
            ref_same_dims(&m->tensors[op->residual_in], y, y->rank));
}

bool ref_window_ok(const struct mdl_window *win, const struct mdl_tensor *x,
                   const struct mdl_tensor *y)
{
    for (size_t d = 0; d < win->rank; d++) {
        if (win->kernel[d] == 0 || win->stride[d] == 0) {
            return false;
        }
    }
    return win->rank >= 1 && win->rank <= 3 && x->rank == win->rank + 2 && y->rank == x->rank &&
           x->dim[0] == y->dim[0];
}

bool ref_all_f32(const struct mdl_model *m, const struct mdl_op *op)
{
    bool all = true;

    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        all &= op->in[i] == MDL_NONE || m->tensors[op->in[i]].dtype == MDL_F32;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        all &= op->out[i] == MDL_NONE || m->tensors[op->out[i]].dtype == MDL_F32;
    }
    return all;
}
