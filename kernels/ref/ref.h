/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref/ref.h - shared by the references: the tensors of a call, its team, its epilogue
 *
 * References are written to be readable and correct. They take any strides (negative and zero too),
 * any alignment, empty tensors, and every type that makes sense for the operator. They sum in
 * double; integers in int64, wrapping like two's complement. For kernels/ref/ only.
 *
 * All pointers are borrowed from the call. Threads: any of the team.
 */
#pragma once

#include "kernels/common/planned.h"
#include "kernels/ref/ref_element.h"
#include "kernels/ref/ref_walk.h"

/* Input or output @i of a call. */
static inline const struct mdl_tensor *ref_in(const struct krn_call *c, size_t i)
{
    return &c->model->tensors[c->op->in[i]];
}
static inline const struct mdl_tensor *ref_out(const struct krn_call *c, size_t i)
{
    return &c->model->tensors[c->op->out[i]];
}
static inline enum mdl_dtype ref_in_dtype(const struct mdl_model *m, const struct mdl_op *op,
                                          size_t i)
{
    return op->in[i] == MDL_NONE ? MDL_DTYPE_COUNT : m->tensors[op->in[i]].dtype;
}
static inline enum mdl_dtype ref_out_dtype(const struct mdl_model *m, const struct mdl_op *op)
{
    return m->tensors[op->out[0]].dtype;
}

/** ref_share() - calls body(c, begin, end) for disjoint ranges that cover 0..n-1, on the team. */
typedef void ref_body_fn(const struct krn_call *c, size_t begin, size_t end);
void ref_share(const struct krn_call *c, size_t n, ref_body_fn *body);

/** REF_EACH_ELEMENT() - defines WHAT_run(), which calls WHAT_body() for the elements of the
 * output */
#define REF_EACH_ELEMENT(what)                                                                     \
    static void what##_run(const struct krn_call *c)                                               \
    {                                                                                              \
        ref_share(c, mdl_elements(ref_out(c, 0)), what##_body);                                    \
    }

/** ref_taps() - Return: elements of the window's kernel. */
static inline size_t ref_taps(const struct mdl_window *win)
{
    size_t n = 1;

    for (size_t d = 0; d < win->rank; d++) {
        n *= win->kernel[d];
    }
    return n;
}

/** ref_act() - enum mdl_act on one value; formulas at MDL_ACTS(). NaN stays NaN. */
double ref_act(enum mdl_act act, double a, double b, double x);

/** ref_finish() - the epilogue of one f32 result @t: residual (element @residual_at) and
 * activation. */
static inline double ref_finish(const struct krn_call *c, double t, ptrdiff_t residual_at)
{
    const struct mdl_op *op = c->op;

    if (op->residual == MDL_RESIDUAL_BEFORE_ACT) {
        t += (double)ref_f32(c->residual, residual_at);
    }
    t = ref_act(op->act, (double)op->act_a, (double)op->act_b, t);
    if (op->residual == MDL_RESIDUAL_AFTER_ACT) {
        t += (double)ref_f32(c->residual, residual_at);
    }
    return t;
}

/** ref_plain() - Return: whether the op has no epilogue, as integer results require.
 * ref_epilogue_ok() - Return: whether it has no epilogue, or one on f32 with an f32 residual of y's
 * shape. */
bool ref_plain(const struct mdl_op *op);
bool ref_epilogue_ok(const struct mdl_model *m, const struct mdl_op *op);
/** ref_walk_add_residual() - adds the residual as operand, or @y again if there is none. */
void ref_walk_add_residual(struct ref_walk *w, const struct krn_call *c);

/** REF_PRIMITIVE() - defines the table entry of operator WHAT */
#define REF_PRIMITIVE(what, kind, can, does)                                                       \
    KRN_PRIMITIVE(what##__ref, kind, .reference = true, .supports = can, .run = does)
