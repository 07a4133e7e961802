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

#include <stdatomic.h>
#include <xnnpack.h>

#include "kernels/conv_common.h"

#define KRN_XNN_IDLE 16u /* operators that are kept */

/** krn_xnn_ready() - Return: whether the library works on this CPU. Threads: any. */
bool krn_xnn_ready(void);

struct krn_xnn {
    const struct mdl_model *m; /* borrowed */
    const struct mdl_op *op;
    /* makes one operator. Return: 0, -ENOMEM, -EOPNOTSUPP */
    int (*make)(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret);
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

/** krn_xnn_finish() - runs @op, which is set up, on the call's team and gives it back; then what of
 * the epilogue XNNPACK does not do: all of @e onto the flat image @y. */
void krn_xnn_finish(const struct krn_call *c, xnn_operator_t op, const struct krn_epilogue *e,
                    const struct krn_img *y);

/** krn_xnn_range() - the element function as limits of the result. Return: false if it is none,
 * then there are no limits and it is left to the epilogue. */
bool krn_xnn_range(const struct mdl_op *op, float *ret_min, float *ret_max);
/** krn_xnn_rest() - of @e what is left to do when shift and limits are done */
struct krn_epilogue krn_xnn_rest(const struct mdl_op *op, struct krn_epilogue e);
int krn_xnn_error(enum xnn_status s);

/** krn_xnn_padding() - rows or columns of padding behind the image that its windows reach */
size_t krn_xnn_padding(size_t out, size_t stride, size_t span, ptrdiff_t begin, size_t size);
