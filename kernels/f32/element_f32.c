/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BINARY, UNARY and PRELU in f32: rows of vectors (kernels/common/nest.h), whatever the
 * layout, if the output's rows are dense. Operands' rows are dense, one repeated value, or picked
 * up value by value (an operand whose layout is not the output's).
 */
#include <math.h>

#include "base/base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"

struct job {
    const struct krn_call *call;
    struct krn_nest nest;
    bool has_residual;
    /* of rows: 1 if dense, 0 for one repeated value, or any other */
    ptrdiff_t a_stride, b_stride, r_stride;
};

/* The tensors are y, a, [b], [r]. Return: false unless the output's rows are dense. */
static bool job_of(const struct mdl_model *m, const struct mdl_op *op, struct job *j)
{
    const struct mdl_tensor *t[KRN_NEST_TENSORS] = {&m->tensors[op->out[0]]};
    const size_t inputs = op->kind == MDL_OP_UNARY ? 1 : 2;
    size_t count = 1;

    for (size_t i = 0; i < inputs; i++) {
        t[count++] = &m->tensors[op->in[i]];
    }
    j->has_residual = op->residual != MDL_RESIDUAL_NONE;
    if (j->has_residual) {
        if (op->residual_in == MDL_NONE) {
            return false;
        }
        t[count++] = &m->tensors[op->residual_in];
    }
    for (size_t i = 0; i < count; i++) {
        if (t[i]->dtype != MDL_F32) {
            return false;
        }
    }
    if (op->scale || op->shift || !krn_nest_of(t, count, &j->nest) ||
        krn_nest_inner(&j->nest, 0) != 1) {
        return false;
    }
    j->a_stride = krn_nest_inner(&j->nest, 1);
    j->b_stride = inputs > 1 ? krn_nest_inner(&j->nest, 2) : 0;
    j->r_stride = j->has_residual ? krn_nest_inner(&j->nest, count - 1) : 0;
    return true;
}

KRN_INLINE vf pick(const float *p, ptrdiff_t stride, size_t n)
{
    float lanes[KRN_VL] = {0};

    for (size_t k = 0; k < n; k++) {
        lanes[k] = p[(ptrdiff_t)k * stride];
    }
    return vf_load(lanes);
}

KRN_INLINE vf operand(const float *p, ptrdiff_t stride, size_t i, size_t n)
{
    if (stride == 0) {
        return vf_set(*p);
    }
    if (stride != 1) {
        return pick(p + (ptrdiff_t)i * stride, stride, n);
    }
    return vf_load_any(p + i, n);
}

KRN_INLINE vf finish(const struct mdl_op *op, vf v, vf r)
{
    if (op->residual == MDL_RESIDUAL_BEFORE_ACT) {
        v = v + r;
    }
    v = krn_act_vec(op->act, v, op->act_a, op->act_b);
    return op->residual == MDL_RESIDUAL_AFTER_ACT ? v + r : v;
}

/* Computes @expression of the vectors a and b for one row. @plain: without epilogue. */
#define ROW(expression)                                                                            \
    do {                                                                                           \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; plain && i + KRN_VL <= n; i += KRN_VL) {                                            \
            vf va = operand(a, j->a_stride, i, KRN_VL);                                            \
            vf vb = operand(b, j->b_stride, i, KRN_VL);                                            \
            vf_store(y + i, (expression));                                                         \
            (void)va, (void)vb;                                                                    \
        }                                                                                          \
        for (; i < n; i += KRN_VL) {                                                               \
            size_t k = base_min(n - i, (size_t)KRN_VL);                                            \
            vf va = operand(a, j->a_stride, i, k);                                                 \
            vf vb = operand(b, j->b_stride, i, k);                                                 \
            vf vr = r ? operand(r, j->r_stride, i, k) : vf_set(0.0f);                              \
                                                                                                   \
            (void)vb;                                                                              \
            vf_store_n(y + i, plain ? (expression) : finish(j->call->op, (expression), vr), k);    \
        }                                                                                          \
    } while (0)

#define CASE(which, expression)                                                                    \
    case which:                                                                                    \
        ROW(expression);                                                                           \
        break;

/* One row of a call: @at are the offsets of y, a, [b], [r]. */
static void binary_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const struct mdl_op *op = j->call->op;
    float *y = (float *)j->call->out[0] + at[0];
    const float *a = (const float *)j->call->in[0] + at[1];
    const float *b = (const float *)j->call->in[1] + at[2];
    const float *r = j->has_residual ? (const float *)j->call->residual + at[3] : NULL;
    const bool plain = op->act == MDL_ACT_NONE && !r;

    if (op->kind == MDL_OP_PRELU) {
        ROW(vf_select(va < 0.0f, va * vb, va));
        return;
    }
    switch (op->attr.binary) {
        CASE(MDL_BIN_ADD, va + vb)
        CASE(MDL_BIN_SUB, va - vb)
        CASE(MDL_BIN_MUL, va * vb)
        CASE(MDL_BIN_DIV, va / vb)
        CASE(MDL_BIN_MAX, vf_nan_max(va, vb))
        CASE(MDL_BIN_MIN, vf_nan_min(va, vb))
    default:
        break;
    }
}

/* ---- functions that only UNARY needs. Each states its error; ulp is the distance to the next
 * float. NaN gives NaN. The polynomials come from the Cephes functions named (S. Moshier, single
 * precision). ---- */

/* to the nearest integer, ties to even; exact. Floats of 2^23 and more are integers. */
KRN_INLINE vf vf_round(vf x)
{
    vi sign = (vi)x & INT32_MIN;
    vf big = (vf)((vi)vf_set(8388608.0f) | sign);
    vf y = (x + big) - big;

    return vf_select(vf_abs(x) < 8388608.0f, (vf)((vi)y | sign), x);
}

KRN_INLINE vf vf_floor(vf x)
{
    vf y = vf_round(x);

    return y - vf_select(y > x, vf_set(1.0f), vf_set(0.0f));
}

KRN_INLINE vf vf_ceil(vf x)
{
    vf y = vf_round(x);

    y = y + vf_select(y < x, vf_set(1.0f), vf_set(0.0f));
    return (vf)((vi)y | ((vi)x & INT32_MIN)); /* -0.5 gives -0 */
}

/* -1, 0 or 1; keeps the sign of 0 */
KRN_INLINE vf vf_sign(vf x)
{
    return vf_select(x > 0.0f, vf_set(1.0f), vf_select(x < 0.0f, vf_set(-1.0f), x));
}

/* ln x within 2 ulp, for every x: Cephes' logf */
KRN_INLINE vf vf_log(vf x)
{
    vi small = x < 1.17549435e-38f; /* denormals are scaled first */
    vf v = vf_select(small, x * 8388608.0f, x), m, e, z, p, y;
    vi bits = (vi)v, shift = (bits >> 23) - 126, low;

    m = (vf)((bits & 0x007fffff) | 0x3f000000); /* in [0.5, 1) */
    low = m < 0.707106781f;
    e = __builtin_convertvector(shift, vf) - vf_select(small, vf_set(23.0f), vf_set(0.0f));
    e = e - vf_select(low, vf_set(1.0f), vf_set(0.0f));
    m = m + vf_select(low, m, vf_set(0.0f)) - 1.0f;
    z = m * m;
    p = vf_log_poly(m);
    y = p * (m * z) + e * -2.12194440e-4f - 0.5f * z;
    y = (m + y) + e * 0.693359375f;
    y = vf_select(x < vf_set(INFINITY), y, x); /* infinity and NaN */
    y = vf_select(x == 0.0f, vf_set(-INFINITY), y);
    return vf_select(x < 0.0f, vf_set(NAN), y);
}

/* libm's, for the lanes that leave the range of the reduction, which models hardly have */
static __attribute__((noinline)) vf vf_sin_far(vf x, bool cosine)
{
    for (size_t i = 0; i < KRN_VL; i++) {
        x[i] = cosine ? cosf(x[i]) : sinf(x[i]);
    }
    return x;
}

/* sin x, or cos x if @cosine, within 1.2e-7: Cephes' sinf. x minus a multiple of pi / 2 is taken
 * in three exact steps; the polynomial depends on the quadrant. */
KRN_INLINE vf vf_sin_cos(vf x, bool cosine)
{
    vi near = vf_abs(x) < 8192.0f, n, odd, minus;
    vf q = vf_round(vf_select(near, x, vf_set(0.0f)) * 0.636619772f), r, z, s, c, y;
    int32_t all = -1;

    r = ((x - q * 1.5703125f) - q * 4.837512969970703125e-4f) - q * 7.549789954891879e-8f;
    n = __builtin_convertvector(q, vi) + (cosine ? 1 : 0);
    odd = -(n & 1);
    minus = (n & 2) << 30;
    z = r * r;
    s = vf_set(-1.9515295891e-4f);
    s = s * z + 8.3321608736e-3f;
    s = s * z + -1.6666654611e-1f;
    s = s * (z * r) + r;
    c = vf_set(2.443315711809948e-5f);
    c = c * z + -1.388731625493765e-3f;
    c = c * z + 4.166664568298827e-2f;
    c = c * (z * z) - 0.5f * z + 1.0f;
    y = (vf)((vi)vf_select(odd, c, s) ^ minus);
    for (size_t i = 0; i < KRN_VL; i++) {
        all &= near[i];
    }
    return all ? y : vf_select(near, y, vf_sin_far(x, cosine));
}

/* a NaN stays one, as it is neither below nor above */
KRN_INLINE vf shrink(vf x, float limit, float bias)
{
    vf inside = vf_select(x != x, x, vf_set(0.0f));

    return vf_select(x < -limit, x + bias, vf_select(x > limit, x - bias, inside));
}

/* Functions of UNARY that krn_act_vec() lacks, or that are faster without its call; p and q are the
 * op's parameters. */
/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(MDL_ACT_RELU, vf_max(vf_set(0.0f), va))                                                      \
    X(MDL_ACT_SELU,                                                                                \
      q * vf_select(va > 0.0f, va, p * vf_expm1_neg(vf_min(vf_set(0.0f), va))))                    \
    X(MDL_ACT_SOFTSIGN, va / (1.0f + vf_abs(va)))                                                  \
    X(MDL_ACT_SIGMOID, vf_sigmoid(va))                                                             \
    X(MDL_ACT_TANH, vf_tanh(va))                                                                   \
    X(MDL_ACT_GELU, vf_gelu(va))                                                                   \
    X(MDL_ACT_EXP, vf_exp(va))                                                                     \
    X(MDL_ACT_SQRT, vf_sqrt(va))                                                                   \
    X(MDL_ACT_RECIPROCAL, 1.0f / va)                                                               \
    X(MDL_ACT_NEG, -va)                                                                            \
    X(MDL_ACT_ABS, vf_abs(va))                                                                     \
    X(MDL_ACT_LOG, vf_log(va))                                                                     \
    X(MDL_ACT_SIN, vf_sin_cos(va, false))                                                          \
    X(MDL_ACT_COS, vf_sin_cos(va, true))                                                           \
    X(MDL_ACT_FLOOR, vf_floor(va))                                                                 \
    X(MDL_ACT_CEIL, vf_ceil(va))                                                                   \
    X(MDL_ACT_ROUND, vf_round(va))                                                                 \
    X(MDL_ACT_SIGN, vf_sign(va))                                                                   \
    X(MDL_ACT_THRESHOLDED_RELU, vf_select(va <= p, vf_set(0.0f), va))                              \
    X(MDL_ACT_SHRINK, shrink(va, p, q))                                                            \
    X(MDL_ACT_ERF, vf_erf(va))
/* clang-format on */

static void unary_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const struct mdl_op *op = j->call->op;
    float *y = (float *)j->call->out[0] + at[0];
    const float *a = (const float *)j->call->in[0] + at[1], *b = a, *r = NULL;
    const float p = op->act_a, q = op->act_b;
    const bool plain = true;

    switch (op->act) {
        FUNCTIONS(CASE)
    default:
        ROW(krn_act_vec(op->act, va, p, q));
        break;
    }
}

static bool is_vector_function(enum mdl_act act)
{
#define KNOWN(function, expression) || act == function
    return act <= MDL_ACT_SOFTPLUS FUNCTIONS(KNOWN);
#undef KNOWN
}

static bool supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    switch (op->kind) {
    case MDL_OP_UNARY:
        return is_vector_function(op->act) && op->residual == MDL_RESIDUAL_NONE &&
               job_of(m, op, &j);
    case MDL_OP_BINARY:
        return op->attr.binary <= MDL_BIN_MIN && op->act <= MDL_ACT_SOFTPLUS && job_of(m, op, &j);
    default:
        return op->act <= MDL_ACT_SOFTPLUS && job_of(m, op, &j);
    }
}

static void run(const struct krn_call *call)
{
    struct job j = {.call = call};

    if (job_of(call->model, call->op, &j)) {
        krn_nest_share(&j.nest, call->pool, call->width,
                       call->op->kind == MDL_OP_UNARY ? unary_row : binary_row, &j);
    }
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_ISA_PRIMITIVE(what##_f32, kind, KRN_ISA_NEEDS, .supports = supports, .run = run)

PRIMITIVE(binary, MDL_OP_BINARY);
PRIMITIVE(prelu, MDL_OP_PRELU);
PRIMITIVE(unary, MDL_OP_UNARY);
