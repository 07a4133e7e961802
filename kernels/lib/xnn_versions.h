/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/xnn.h - operators of XNNPACK for rows of the table
 *
 * An operator of XNNPACK holds its packed weights, which cannot be shared, and where its tensors
 * are: only one team can run it at a time. So each op has a few of them, taken and given back
 * without a lock. One is made at load; another one when a run finds none, so an op costs its
 * weights as often as teams have ever run it at once, and with no more of them than before nothing
 * is allocated.
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <xnnpack.h>

#include "kernels/common/conv_common.h"

#define KRN_XNN_IDLE 16u /* operators that are kept */

/** krn_xnn_ready() - Return: whether the library works on this CPU. Threads: any. */
bool krn_xnn_ready(void);
/** krn_xnn_keeps_nan() - whether limits of a result, even infinite ones, leave a NaN. In kernels of
 * 2022 for x86 they make the lower limit of it. Threads: any. */
bool krn_xnn_keeps_nan(void);

struct krn_xnn {
    const struct mdl_model *m; /* borrowed */
    const struct mdl_op *op;
    /* makes one operator. Return: 0, -ENOMEM, -EOPNOTSUPP */
    int (*make)(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret);
    float *constants; /* owned; what operators read in a run, or NULL */
    _Atomic(xnn_operator_t) idle[KRN_XNN_IDLE];
};

/** krn_xnn_new() - with one operator in it. @bytes: of weights in each. Return: 0, -ENOMEM,
 * -EOPNOTSUPP. The first call of a row's prepare(); later ones have nothing to do. */
int krn_xnn_new(const struct mdl_model *m, const struct mdl_op *op,
                int (*make)(const struct mdl_model *m, const struct mdl_op *op,
                            xnn_operator_t *ret),
                size_t bytes, struct krn_prepared *ret);
void krn_xnn_release(struct krn_prepared *p);

xnn_operator_t krn_xnn_take(struct krn_xnn *x);
void krn_xnn_give(struct krn_xnn *x, xnn_operator_t op);

/** krn_xnn_nowhere() - an address for the first setup of an operator that makes a table of row
 * pointers, relative to its input, of which later ones move all but those that point to zeros.
 * Nothing lies there or behind it, so that no row is taken for the zeros. Nothing is read. */
float *krn_xnn_nowhere(void);

/** krn_xnn_finish() - runs @op, which is set up, on the call's team and gives it back; then what of
 * the epilogue XNNPACK does not do: all of @e onto the flat image @y (NULL: @e is empty). */
void krn_xnn_finish(const struct krn_call *c, xnn_operator_t op, const struct krn_epilogue *e,
                    const struct krn_img *y);
/** krn_xnn_finish_or() - the same for an operator without limits. A result that is infinite may
 * have been a NaN where XNNPACK does not keep those: then @portable, a row that packs nothing, runs
 * the call anew, which may be slow. @y is not NULL. */
void krn_xnn_finish_or(const struct krn_call *c, xnn_operator_t op, const struct krn_epilogue *e,
                       const struct krn_img *y, const struct krn_variant *portable);

int krn_xnn_error(enum xnn_status s);

/** krn_xnn_range() - the element function as limits of the result. Return: false if it is none, or
 * limits would lose a NaN; then there are no limits and it is left to the epilogue. */
bool krn_xnn_range(const struct mdl_op *op, float *ret_min, float *ret_max);
/** krn_xnn_rest() - of @e what is left to do when shift and limits are done */
struct krn_epilogue krn_xnn_rest(const struct mdl_op *op, struct krn_epilogue e);
/** krn_xnn_padding() - rows or columns of padding behind the image that its windows reach */
size_t krn_xnn_padding(size_t out, size_t stride, size_t span, ptrdiff_t begin, size_t size);

#ifdef __x86_64__
#define KRN_XNN_NEEDS KRN_CPU_AVX2 /* kernels for older CPUs read behind the last value */
#else
#define KRN_XNN_NEEDS 0
#endif
#define KRN_XNN_STEP 4u /* whole vectors of kernels that read behind the last value */

/*
 * ---- by either interface ----
 *
 * Of the two that are known the earlier one (xnn_2022.c) is told shapes when an operator is made
 * and together with its tensors, the later one (xnn_2024.c) shapes and tensors apart; elementwise
 * operators are one function each, or one for all. make: of an operator, whose weights are copied;
 * setup: before each of its runs. All return 0, -ENOMEM or -EOPNOTSUPP; a setup like one that
 * succeeded before succeeds.
 */
struct krn_xnn_limits {
    float min, max; /* of the result */
};

/** @kernel: [o][tap][c] of all groups; @shift: [o], or NULL */
int krn_xnn_make_conv(const struct krn_conv *c, const float *kernel, const float *shift,
                      struct krn_xnn_limits l, xnn_operator_t *ret);
int krn_xnn_setup_conv(xnn_operator_t x, const struct krn_conv *c, const float *in, float *out,
                       pthreadpool_t pool);
/** @kernel: [n][k] */
int krn_xnn_make_product(const struct krn_product *p, const float *kernel, const float *shift,
                         struct krn_xnn_limits l, xnn_operator_t *ret);
int krn_xnn_setup_product(xnn_operator_t x, const struct krn_product *p, const float *in,
                          float *out, pthreadpool_t pool);

enum krn_xnn_pools { KRN_XNN_MAX, KRN_XNN_AVERAGE, KRN_XNN_GLOBAL /* of all pixels */ };
struct krn_xnn_pool {
    enum krn_xnn_pools which;
    struct krn_img x, y; /* both flat */
    struct krn_win win;
};
/** krn_xnn_knows_pool() - can it be made. @ret_space: bytes that each member of a team gives it to
 * work in */
bool krn_xnn_knows_pool(const struct krn_xnn_pool *p, size_t *ret_space);
int krn_xnn_make_pool(const struct krn_xnn_pool *p, xnn_operator_t *ret);
/** @space: that of all members, 64-byte aligned; read or written by the run alone */
int krn_xnn_setup_pool(xnn_operator_t x, const struct krn_xnn_pool *p, const float *in, float *out,
                       void *space, pthreadpool_t pool);

/* @count rows of @n values, at these distances */
struct krn_xnn_rows {
    size_t count, n, x_row, y_row;
};
/** the element function of @op alone */
int krn_xnn_make_unary(const struct mdl_op *op, const struct krn_xnn_rows *r, xnn_operator_t *ret);
int krn_xnn_setup_unary(xnn_operator_t x, const struct mdl_op *op, const struct krn_xnn_rows *r,
                        const float *in, float *out, pthreadpool_t pool);
/** @slope: [n], the same at making and at setup */
bool krn_xnn_knows_prelu(const struct krn_xnn_rows *r);
int krn_xnn_make_prelu(const struct krn_xnn_rows *r, const float *slope, xnn_operator_t *ret);
int krn_xnn_setup_prelu(xnn_operator_t x, const struct krn_xnn_rows *r, const float *slope,
                        const float *in, float *out, pthreadpool_t pool);

/* dense tensors, outermost dim first; 1 where the other one's dim is broadcast to */
struct krn_xnn_shapes {
    size_t dims, a[XNN_MAX_TENSOR_DIMS], b[XNN_MAX_TENSOR_DIMS];
};
/** ADD, SUB, MUL and DIV */
int krn_xnn_make_binary(enum mdl_binary which, xnn_operator_t *ret);
int krn_xnn_setup_binary(xnn_operator_t x, enum mdl_binary which, const struct krn_xnn_shapes *s,
                         const float *a, const float *b, float *out, pthreadpool_t pool);
