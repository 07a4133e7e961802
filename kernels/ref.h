/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref.h - what the references share: element access, a walk over strided tensors, epilogue
 *
 * References are written to be read and to be right: they take any strides (negative and zero
 * too), any alignment, empty tensors and every dtype that makes sense for the operator, and
 * accumulate in double (integers in int64, wrapping like two's complement). For kernels/ref_*.c
 * and const_eval.c only.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "base.h"
#include "kernels/kernels.h"

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
static inline bool ref_is_int(enum mdl_dtype t)
{
    return t != MDL_F32;
}

/* Elements by index; memcpy because buffers from a client or a file may have any alignment. */
static inline float ref_f32(const void *p, ptrdiff_t i)
{
    float v;
    memcpy(&v, (const char *)p + i * (ptrdiff_t)sizeof(v), sizeof(v));
    return v;
}
static inline void ref_set_f32(void *p, ptrdiff_t i, double v)
{
    float f = (float)v;
    memcpy((char *)p + i * (ptrdiff_t)sizeof(f), &f, sizeof(f));
}

/** ref_i64() - an integer or boolean element, widened. ref_f64() - any element. */
static inline int64_t ref_i64(const void *p, enum mdl_dtype t, ptrdiff_t i)
{
    const uint8_t *b = p;
    int32_t v32;
    int64_t v64;

    switch (t) {
    case MDL_I32:
        memcpy(&v32, b + i * 4, sizeof(v32));
        return v32;
    case MDL_I64:
        memcpy(&v64, b + i * 8, sizeof(v64));
        return v64;
    case MDL_I8:
        return (int8_t)b[i];
    case MDL_U8:
        return b[i];
    default:
        return b[i] != 0;
    }
}
static inline double ref_f64(const void *p, enum mdl_dtype t, ptrdiff_t i)
{
    return t == MDL_F32 ? (double)ref_f32(p, i) : (double)ref_i64(p, t, i);
}

/** ref_set_i64() - stores the low bits (BOOL: v != 0; F32: rounded). */
static inline void ref_set_i64(void *p, enum mdl_dtype t, ptrdiff_t i, int64_t v)
{
    uint8_t *b = p;
    uint32_t v32 = (uint32_t)(uint64_t)v;
    float f = (float)v;

    switch (t) {
    case MDL_F32:
        memcpy(b + i * 4, &f, sizeof(f));
        break;
    case MDL_I32:
        memcpy(b + i * 4, &v32, sizeof(v32));
        break;
    case MDL_I64:
        memcpy(b + i * 8, &v, sizeof(v));
        break;
    case MDL_BOOL:
        b[i] = v != 0;
        break;
    default:
        b[i] = (uint8_t)(uint64_t)v;
        break;
    }
}

/** ref_set_f64() - stores a real value: integers get it truncated toward zero and saturated (what
 * lies outside is undefined in ONNX; it must only be safe), NaN becomes 0. */
void ref_set_f64(void *p, enum mdl_dtype t, ptrdiff_t i, double v);

/* A walk in row-major order over @shape with the element offset of up to five operands. */
#define REF_WALK_MAX 5u
struct ref_walk {
    size_t rank, operands;
    size_t dim[MDL_RANK_MAX], index[MDL_RANK_MAX];
    ptrdiff_t stride[REF_WALK_MAX][MDL_RANK_MAX];
    ptrdiff_t at[REF_WALK_MAX];
};

/** ref_walk_start() - stands at the @linear-th element of @shape's dims, without operands yet. */
void ref_walk_start(struct ref_walk *w, const struct mdl_tensor *shape, size_t linear);
/** ref_walk_add() - adds operand w->operands++; dims align from the right, size 1 is repeated. */
void ref_walk_add(struct ref_walk *w, const struct mdl_tensor *t);

static inline void ref_walk_next(struct ref_walk *w)
{
    for (size_t d = w->rank; d-- > 0;) {
        bool wraps = ++w->index[d] == w->dim[d];

        for (size_t k = 0; k < w->operands; k++) {
            w->at[k] += wraps ? w->stride[k][d] * (1 - (ptrdiff_t)w->dim[d]) : w->stride[k][d];
        }
        if (!wraps) {
            return;
        }
        w->index[d] = 0;
    }
}

/** ref_share() - calls body(c, begin, end) for disjoint ranges that cover 0..n-1, on the team. */
typedef void ref_body_fn(const struct krn_call *c, size_t begin, size_t end);
void ref_share(const struct krn_call *c, size_t n, ref_body_fn *body);

/** ref_act() - enum mdl_act on one value; formulas at enum mdl_act, SELU: b (x > 0 ? x : a (e^x -
 * 1)). NaN stays NaN. */
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

/** ref_plain() - the op has no epilogue: what integer results require. ref_epilogue_ok() - either
 * no epilogue, or one on f32 with an f32 residual of y's shape. */
bool ref_plain(const struct mdl_op *op);
bool ref_epilogue_ok(const struct mdl_model *m, const struct mdl_op *op);
/** ref_walk_add_residual() - adds the residual as operand, or @y again where there is none. */
void ref_walk_add_residual(struct ref_walk *w, const struct krn_call *c);

/** ref_offset() - element offset of a multi-index. */
static inline ptrdiff_t ref_offset(const struct mdl_tensor *t, const size_t *index)
{
    ptrdiff_t at = 0;

    for (size_t d = 0; d < t->rank; d++) {
        at += (ptrdiff_t)index[d] * t->stride[d];
    }
    return at;
}
