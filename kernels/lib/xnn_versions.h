/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/xnn_versions.h - one interface to both interfaces of XNNPACK
 *
 * The earlier interface (xnn_2022.c) takes shapes when an operator is made and together with its
 * tensors; each elementwise operator has its own function. The later one (xnn_2024.c) takes shapes
 * and tensors separately; one function makes all elementwise operators. The build compiles one of
 * the two files.
 *
 * make functions make an operator and copy its weights; call setup before each run. All return 0,
 * -ENOMEM or -EOPNOTSUPP. A setup that succeeded once succeeds again.
 */
#pragma once

#include <errno.h>
#include <xnnpack.h>

#include "kernels/common/conv_common.h"

static inline int krn_xnn_error(enum xnn_status s)
{
    return s == xnn_status_success ? 0 : s == xnn_status_out_of_memory ? -ENOMEM : -EOPNOTSUPP;
}

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
/** krn_xnn_knows_pool() - Return: whether it can be made. @ret_space: bytes of scratch per member
 * of a team */
bool krn_xnn_knows_pool(const struct krn_xnn_pool *p, size_t *ret_space);
int krn_xnn_make_pool(const struct krn_xnn_pool *p, xnn_operator_t *ret);
/** @space: for all members, 64-byte aligned; only the run reads or writes it */
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
/** @slope: [n], the same for make and setup */
bool krn_xnn_knows_prelu(const struct krn_xnn_rows *r);
int krn_xnn_make_prelu(const struct krn_xnn_rows *r, const float *slope, xnn_operator_t *ret);
int krn_xnn_setup_prelu(xnn_operator_t x, const struct krn_xnn_rows *r, const float *slope,
                        const float *in, float *out, pthreadpool_t pool);

/* dense tensors, outermost dim first; a dim of 1 is broadcast to the other tensor's */
struct krn_xnn_shapes {
    size_t dims, a[XNN_MAX_TENSOR_DIMS], b[XNN_MAX_TENSOR_DIMS];
};
/** ADD, SUB, MUL and DIV */
int krn_xnn_make_binary(enum mdl_binary which, xnn_operator_t *ret);
int krn_xnn_setup_binary(xnn_operator_t x, enum mdl_binary which, const struct krn_xnn_shapes *s,
                         const float *a, const float *b, float *out, pthreadpool_t pool);
