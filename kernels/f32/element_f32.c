/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BINARY, UNARY, PRELU and AFFINE in f32: rows of vectors (kernels/nest.h), whatever the layout, as
 * long as the output's rows are dense and each operand's rows are dense or one repeated value.
 */
#include "base.h"
#include "kernels/common/epilogue_vec.h"
#include "kernels/common/nest.h"

struct job {
    const struct krn_call *call;
    struct krn_nest nest;
    size_t parts;
    bool has_residual;
    /* rows of these: 1 for dense, 0 for one value */
    bool a_dense, b_dense, r_dense;
};

/* dense rows of the output, dense or constant ones of the others; the tensors are y, a, [b], [r] */
static bool job_of(const struct mdl_model *m, const struct mdl_op *op, size_t inputs, struct job *j)
{
    const struct mdl_tensor *t[KRN_NEST_TENSORS] = {&m->tensors[op->out[0]]};
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
    for (size_t i = 1; i < count; i++) {
        ptrdiff_t s = krn_nest_inner(&j->nest, i);

        if (s != 0 && s != 1) {
            return false;
        }
    }
    j->a_dense = krn_nest_inner(&j->nest, 1) == 1;
    j->b_dense = inputs > 1 && krn_nest_inner(&j->nest, 2) == 1;
    j->r_dense = j->has_residual && krn_nest_inner(&j->nest, count - 1) == 1;
    return true;
}

KRN_INLINE vf operand(const float *p, bool dense, size_t i, size_t n)
{
    return !dense ? vf_set(*p) : n == KRN_VL ? vf_load(p + i) : vf_load_n(p + i, n);
}

KRN_INLINE vf finish(const struct mdl_op *op, vf v, vf r)
{
    if (op->residual == MDL_RESIDUAL_BEFORE_ACT) {
        v = v + r;
    }
    v = krn_act_vec(op->act, v, op->act_a, op->act_b);
    return op->residual == MDL_RESIDUAL_AFTER_ACT ? v + r : v;
}

/* One row through @expression of the vectors a and b. With @plain there is no epilogue to ask. */
#define ROW(expression)                                                                            \
    do {                                                                                           \
        size_t i = 0;                                                                              \
                                                                                                   \
        for (; plain && i + KRN_VL <= n; i += KRN_VL) {                                            \
            vf va = operand(a, j->a_dense, i, KRN_VL);                                             \
            vf vb = operand(b, j->b_dense, i, KRN_VL);                                             \
            vf_store(y + i, (expression));                                                         \
            (void)va, (void)vb;                                                                    \
        }                                                                                          \
        for (; i < n; i += KRN_VL) {                                                               \
            size_t k = base_min(n - i, (size_t)KRN_VL);                                            \
            vf va = operand(a, j->a_dense, i, k);                                                  \
            vf vb = operand(b, j->b_dense, i, k);                                                  \
            vf vr = r ? operand(r, j->r_dense, i, k) : vf_set(0.0f);                               \
                                                                                                   \
            (void)vb;                                                                              \
            vf_store_n(y + i, plain ? (expression) : finish(j->call->op, (expression), vr), k);    \
        }                                                                                          \
    } while (0)

static void binary_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const struct mdl_op *op = j->call->op;
    float *y = (float *)j->call->out[0] + at[0];
    const float *a = (const float *)j->call->in[0] + at[1];
    const float *b = (const float *)j->call->in[1] + at[2];
    const float *r = j->has_residual ? (const float *)j->call->residual + at[3] : NULL;
    const bool plain = op->act == MDL_ACT_NONE && !r;

    switch (op->attr.binary) {
    case MDL_BIN_ADD:
        ROW(va + vb);
        break;
    case MDL_BIN_SUB:
        ROW(va - vb);
        break;
    case MDL_BIN_MUL:
        ROW(va * vb);
        break;
    case MDL_BIN_DIV:
        ROW(va / vb);
        break;
    case MDL_BIN_MAX: /* a NaN on either side stays one */
        ROW(vf_select(va != va, va, vf_max(va, vb)));
        break;
    case MDL_BIN_MIN:
        ROW(vf_select(va != va, va, vf_min(va, vb)));
        break;
    default:
        break;
    }
}

static void prelu_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const struct mdl_op *op = j->call->op;
    float *y = (float *)j->call->out[0] + at[0];
    const float *a = (const float *)j->call->in[0] + at[1];
    const float *b = (const float *)j->call->in[1] + at[2];
    const float *r = j->has_residual ? (const float *)j->call->residual + at[3] : NULL;
    const bool plain = op->act == MDL_ACT_NONE && !r;

    ROW(vf_select(va < 0.0f, va * vb, va));
}

/* the function is op->act, applied by finish() or here */
static void unary_row(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct job *j = arg;
    const struct mdl_op *op = j->call->op;
    float *y = (float *)j->call->out[0] + at[0];
    const float *a = (const float *)j->call->in[0] + at[1], *b = a, *r = NULL;
    const float p = op->act_a, q = op->act_b;
    const bool plain = true;

    switch (op->act) {
    case MDL_ACT_RELU:
        ROW(vf_max(vf_set(0.0f), va));
        break;
    case MDL_ACT_SELU:
        ROW(q * vf_select(va > 0.0f, va, p * vf_expm1_neg(vf_min(vf_set(0.0f), va))));
        break;
    case MDL_ACT_SOFTSIGN:
        ROW(va / (1.0f + vf_abs(va)));
        break;
    case MDL_ACT_EXP:
        ROW(vf_exp(va));
        break;
    case MDL_ACT_SQRT:
        ROW(vf_sqrt(va));
        break;
    case MDL_ACT_RECIPROCAL:
        ROW(1.0f / va);
        break;
    case MDL_ACT_NEG:
        ROW(-va);
        break;
    case MDL_ACT_ABS:
        ROW(vf_abs(va));
        break;
    default:
        ROW(krn_act_vec(op->act, va, p, q));
        break;
    }
}

static void binary_part(void *arg, size_t part)
{
    struct job *j = arg;

    krn_nest_run(&j->nest, part, j->parts, binary_row, j);
}
static void prelu_part(void *arg, size_t part)
{
    struct job *j = arg;

    krn_nest_run(&j->nest, part, j->parts, prelu_row, j);
}
static void unary_part(void *arg, size_t part)
{
    struct job *j = arg;

    krn_nest_run(&j->nest, part, j->parts, unary_row, j);
}

static bool binary_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    return op->attr.binary <= MDL_BIN_MIN && op->act <= MDL_ACT_SOFTPLUS && job_of(m, op, 2, &j);
}
static bool prelu_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    return op->act <= MDL_ACT_SOFTPLUS && job_of(m, op, 2, &j);
}
static bool unary_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    struct job j;

    return (op->act <= MDL_ACT_EXP || op->act == MDL_ACT_SQRT || op->act == MDL_ACT_RECIPROCAL ||
            op->act == MDL_ACT_NEG || op->act == MDL_ACT_ABS) &&
           op->residual == MDL_RESIDUAL_NONE && job_of(m, op, 1, &j);
}

static void binary_run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (job_of(call->model, call->op, 2, &j)) {
        krn_parallel(call->pool, j.parts, binary_part, &j);
    }
}
static void prelu_run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (job_of(call->model, call->op, 2, &j)) {
        krn_parallel(call->pool, j.parts, prelu_part, &j);
    }
}
static void unary_run(const struct krn_call *call)
{
    struct job j = {.call = call, .parts = base_max(call->width, 1u)};

    if (job_of(call->model, call->op, 1, &j)) {
        krn_parallel(call->pool, j.parts, unary_part, &j);
    }
}

const struct krn_variant KRN_ISA_FN(krn_binary_f32) = {
    .name = "binary_f32__" KRN_ISA_TEXT,
    .kind = MDL_OP_BINARY,
    .needs = KRN_ISA_NEEDS,
    .supports = binary_supports,
    .run = binary_run,
};

const struct krn_variant KRN_ISA_FN(krn_prelu_f32) = {
    .name = "prelu_f32__" KRN_ISA_TEXT,
    .kind = MDL_OP_PRELU,
    .needs = KRN_ISA_NEEDS,
    .supports = prelu_supports,
    .run = prelu_run,
};

const struct krn_variant KRN_ISA_FN(krn_unary_f32) = {
    .name = "unary_f32__" KRN_ISA_TEXT,
    .kind = MDL_OP_UNARY,
    .needs = KRN_ISA_NEEDS,
    .supports = unary_supports,
    .run = unary_run,
};
