/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BINARY, UNARY and PRELU over XNNPACK. Binary operators take dense tensors of any layout and
 * broadcasts among them, but not two operands that repeat along one dim; unary ones take rows with
 * gaps between them. If a NaN may have been lost, the portable primitive runs the op again. Max and
 * Min have no primitive: on x86, XNNPACK silently loses a NaN on the left.
 */
#include "base/base.h"
#include "kernels/common/nest.h"
#include "kernels/common/planned.h"
#include "kernels/lib/xnn.h"
#include "kernels/table.h"

#ifdef __x86_64__
#define STEP 1u /* masked loads at the end of a row */
#else
#define STEP KRN_XNN_STEP
#endif

static bool all_f32(const struct mdl_model *m, const struct mdl_op *op, size_t inputs)
{
    bool all = m->tensors[op->out[0]].dtype == MDL_F32;

    for (size_t i = 0; i < inputs; i++) {
        all &= m->tensors[op->in[i]].dtype == MDL_F32;
    }
    return all && !op->scale && !op->shift;
}

/* ---- binary ---- */

struct binary {
    struct krn_xnn_shapes shapes;
    struct krn_img y;
};

/* Is tensor @t of @n dense but for dims that are broadcast? @shape: its dims, or NULL */
static bool shape_of(const struct krn_nest *n, size_t t, size_t *shape)
{
    ptrdiff_t next = 1;

    for (size_t d = n->dims; d-- > 0;) {
        bool one = n->stride[t][d] == 0;

        if (!one && n->stride[t][d] != next) {
            return false;
        }
        next *= one ? 1 : (ptrdiff_t)n->dim[d];
        if (shape) {
            shape[d] = one ? 1 : n->dim[d];
        }
    }
    return true;
}

/* XNNPACK takes the larger of both operands' dims for the result's: does each come from one? */
static bool covered(const struct krn_nest *n, const struct krn_xnn_shapes *s)
{
    for (size_t d = 0; d < n->dims; d++) {
        if (base_max(s->a[d], s->b[d]) != n->dim[d]) {
            return false;
        }
    }
    return true;
}

/* the result as an image: as the epilogue needs it, else as rows */
static bool result_of(const struct mdl_model *m, const struct mdl_op *op, const struct krn_nest *n,
                      struct krn_img *ret)
{
    size_t c = n->dim[n->dims - 1];

    if (op->act == MDL_ACT_NONE && op->residual == MDL_RESIDUAL_NONE) {
        *ret = (struct krn_img){.n = 1, .h = 1, .w = n->rows, .c = c, .pixel = c};
        return true;
    }
    return krn_img_of(&m->tensors[op->out[0]], ret) && krn_epilogue_supports(m, op, ret) &&
           !krn_epilogue_aliased(m, op);
}

/* overwrites an operand, which then could not be read again */
static bool in_place(const struct mdl_model *m, const struct mdl_op *op)
{
    size_t y = m->tensors[op->out[0]].storage;

    return m->tensors[op->in[0]].storage == y || m->tensors[op->in[1]].storage == y;
}

static bool binary_of(const struct mdl_model *m, const struct mdl_op *op, struct binary *b)
{
    const struct mdl_tensor *t[] = {&m->tensors[op->out[0]], &m->tensors[op->in[0]],
                                    &m->tensors[op->in[1]]};
    struct krn_nest n;

    if (op->attr.binary > MDL_BIN_SUB || !all_f32(m, op, 2) ||
        !krn_nest_of(t, base_array_count(t), &n) || n.dims > XNN_MAX_TENSOR_DIMS) {
        return false;
    }
    b->shapes.dims = n.dims;
    return n.dim[n.dims - 1] % STEP == 0 && shape_of(&n, 0, NULL) && shape_of(&n, 1, b->shapes.a) &&
           shape_of(&n, 2, b->shapes.b) && covered(&n, &b->shapes) && result_of(m, op, &n, &b->y) &&
           krn_xnn_ready() && (krn_xnn_keeps_nan() || !in_place(m, op)) &&
           krn_binary_f32__vec.supports(m, op);
}

KRN_SUPPORTS_AS(binary_supports, struct binary, binary_of)

static int binary_make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    return krn_xnn_make_binary(op->attr.binary, ret);
}

KRN_XNN_PREPARE(binary_prepare, struct binary, binary_of, binary_make, 0)

static void binary_run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_epilogue_of(call);
    struct binary b;

    binary_of(call->model, call->op, &b);
    krn_xnn_setup_binary(x, call->op->attr.binary, &b.shapes, call->in[0], call->in[1],
                         call->out[0], call->pool);
    krn_xnn_finish(call, x, &e, &b.y, &krn_binary_f32__vec);
}

/* ---- unary ---- */

/* XNNPACK's sigmoid is NaN beyond 2e27, and denormals, which these others tell from 0, are 0. */
static bool is_wrong_at_ends(enum mdl_act act)
{
    return act == MDL_ACT_SIGMOID || act == MDL_ACT_SQRT || act == MDL_ACT_FLOOR ||
           act == MDL_ACT_CEIL;
}

static bool unary_of(const struct mdl_model *m, const struct mdl_op *op, struct krn_xnn_rows *r)
{
    const struct mdl_tensor *t[] = {&m->tensors[op->out[0]], &m->tensors[op->in[0]]};
    bool limits = op->act == MDL_ACT_RELU || op->act == MDL_ACT_CLIP;
    struct krn_nest n;

    if (is_wrong_at_ends(op->act) || (limits && !krn_xnn_keeps_nan()) || !all_f32(m, op, 1) ||
        op->residual != MDL_RESIDUAL_NONE || !krn_nest_of(t, base_array_count(t), &n) ||
        n.dims > 2 || krn_nest_inner(&n, 0) != 1 || krn_nest_inner(&n, 1) != 1 ||
        (op->act == MDL_ACT_CLIP && !(op->act_a < op->act_b))) {
        return false;
    }
    r->n = n.dim[n.dims - 1];
    r->count = n.dims == 2 ? n.dim[0] : 1;
    if (n.dims == 2 && (n.stride[0][0] < (ptrdiff_t)r->n || n.stride[1][0] < (ptrdiff_t)r->n)) {
        return false;
    }
    r->y_row = n.dims == 2 ? (size_t)n.stride[0][0] : r->n;
    r->x_row = n.dims == 2 ? (size_t)n.stride[1][0] : r->n;
    return r->n % STEP == 0 && krn_xnn_ready();
}

static int unary_make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct krn_xnn_rows r;

    return unary_of(m, op, &r) ? krn_xnn_make_unary(op, &r, ret) : -EOPNOTSUPP;
}

static bool unary_supports(const struct mdl_model *m, const struct mdl_op *op)
{
    xnn_operator_t x;

    if (unary_make(m, op, &x) < 0) {
        return false;
    }
    xnn_delete_operator(x);
    return true;
}

KRN_XNN_PREPARE(unary_prepare, struct krn_xnn_rows, unary_of, unary_make, 0)

static void unary_run(const struct krn_call *call)
{
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_xnn_rows r;

    unary_of(call->model, call->op, &r);
    krn_xnn_setup_unary(x, call->op, &r, call->in[0], call->out[0], call->pool);
    krn_xnn_finish(call, x, &(struct krn_epilogue){0}, NULL, NULL);
}

/* ---- prelu ---- */

struct prelu {
    struct krn_xnn_rows rows;
    struct krn_img y;
};

/* slopes for each channel, or one for all */
static bool prelu_of(const struct mdl_model *m, const struct mdl_op *op, struct prelu *p)
{
    const struct mdl_tensor *slope = &m->tensors[op->in[1]];
    struct krn_img x;

    if (!all_f32(m, op, 2) || !krn_is_const_f32(m, op->in[1]) ||
        !krn_img_of(&m->tensors[op->in[0]], &x) || !krn_img_of(&m->tensors[op->out[0]], &p->y) ||
        !krn_img_flat(&x) || !krn_img_same(&x, &p->y) || slope->rank < 2 ||
        !krn_epilogue_supports(m, op, &p->y) || krn_epilogue_aliased(m, op)) {
        return false;
    }
    for (size_t d = 0; d < slope->rank; d++) {
        if (d != 1 && slope->dim[d] > 1 && slope->stride[d] != 0) {
            return false;
        }
    }
    p->rows = (struct krn_xnn_rows){x.n * x.h * x.w, x.c, x.pixel, p->y.pixel};
    return x.c % KRN_XNN_STEP == 0 && krn_xnn_knows_prelu(&p->rows) && krn_xnn_ready();
}

/* Return: owned, or NULL */
static float *slopes(const struct mdl_model *m, const struct mdl_op *op, size_t count)
{
    ptrdiff_t stride = m->tensors[op->in[1]].stride[1];
    float *slope = malloc(count * sizeof(float));

    for (size_t c = 0; slope && c < count; c++) {
        slope[c] = krn_load_unaligned(krn_const_ptr(m, op->in[1]), (ptrdiff_t)c * stride);
    }
    return slope;
}

static int prelu_make(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret)
{
    struct prelu p;
    base_autofree float *slope = NULL;

    if (!prelu_of(m, op, &p)) {
        return -EOPNOTSUPP;
    }
    slope = slopes(m, op, p.rows.n);
    return slope ? krn_xnn_make_prelu(&p.rows, slope, ret) : -ENOMEM;
}

KRN_SUPPORTS_AS(prelu_supports, struct prelu, prelu_of)

static int prelu_prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed,
                         size_t width, struct krn_prepared *ret)
{
    bool first = ret->object == NULL;
    struct krn_xnn *x;
    struct prelu p;
    int r = prelu_of(m, op, &p) ? krn_xnn_new(m, op, prelu_make, 2 * p.rows.n * sizeof(float), ret)
                                : -EOPNOTSUPP;

    if (r < 0 || !first) {
        return r;
    }
    x = ret->object;
    x->constants = slopes(m, op, p.rows.n);
    if (!x->constants) {
        krn_xnn_release(ret);
        return -ENOMEM;
    }
    return 0;
}

static void prelu_run(const struct krn_call *call)
{
    const struct krn_xnn *object = call->prepared;
    xnn_operator_t x = krn_xnn_take(call->prepared);
    struct krn_epilogue e = krn_epilogue_of(call);
    struct prelu p;

    prelu_of(call->model, call->op, &p);
    krn_xnn_setup_prelu(x, &p.rows, object->constants, call->in[0], call->out[0], call->pool);
    krn_xnn_finish(call, x, &e, &p.y, NULL);
}

#define PRIMITIVE(what, kind)                                                                      \
    KRN_PRIMITIVE(what##_f32__xnn, kind, .needs = KRN_XNN_NEEDS, .whole = true,                    \
                  .supports = what##_supports, .prepare = what##_prepare,                          \
                  .release = krn_xnn_release, .run = what##_run)

PRIMITIVE(binary, MDL_OP_BINARY);
PRIMITIVE(unary, MDL_OP_UNARY);
PRIMITIVE(prelu, MDL_OP_PRELU);
