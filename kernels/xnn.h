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

int krn_xnn_error(enum xnn_status s);

/* How an operator is told its shape and tensors, by XNNPACK's two interfaces: the flags of its
 * making are followed by caches in the later one (-DKRN_XNN_RESHAPES), which has shapes and tensors
 * apart. */
#ifdef KRN_XNN_RESHAPES
#define KRN_XNN_FLAGS 0, NULL, NULL
static inline int krn_xnn_setup_conv(xnn_operator_t x, const struct krn_img *i, const float *in,
                                     float *out, pthreadpool_t pool)
{
    size_t space = 0, alignment, h, w;
    int r = krn_xnn_error(
        xnn_reshape_convolution2d_nhwc_f32(x, i->n, i->h, i->w, &space, &alignment, &h, &w, pool));

    if (r < 0 || space > 0) { /* nothing is there to work in */
        return r < 0 ? r : -EOPNOTSUPP;
    }
    return krn_xnn_error(xnn_setup_convolution2d_nhwc_f32(x, NULL, in, out));
}
static inline int krn_xnn_setup_product(xnn_operator_t x, size_t rows, const float *in, float *out,
                                        pthreadpool_t pool)
{
    int r = krn_xnn_error(xnn_reshape_fully_connected_nc_f32(x, rows, pool));

    return r < 0 ? r : krn_xnn_error(xnn_setup_fully_connected_nc_f32(x, in, out));
}
#else
#define KRN_XNN_FLAGS 0
static inline int krn_xnn_setup_conv(xnn_operator_t x, const struct krn_img *i, const float *in,
                                     float *out, pthreadpool_t pool)
{
    return krn_xnn_error(xnn_setup_convolution2d_nhwc_f32(x, i->n, i->h, i->w, in, out, pool));
}
static inline int krn_xnn_setup_product(xnn_operator_t x, size_t rows, const float *in, float *out,
                                        pthreadpool_t pool)
{
    return krn_xnn_error(xnn_setup_fully_connected_nc_f32(x, rows, in, out, pool));
}
#endif

/** krn_xnn_range() - the element function as limits of the result. Return: false if it is none,
 * then there are no limits and it is left to the epilogue. */
bool krn_xnn_range(const struct mdl_op *op, float *ret_min, float *ret_max);
/** krn_xnn_rest() - of @e what is left to do when shift and limits are done */
struct krn_epilogue krn_xnn_rest(const struct mdl_op *op, struct krn_epilogue e);
/** krn_xnn_padding() - rows or columns of padding behind the image that its windows reach */
size_t krn_xnn_padding(size_t out, size_t stride, size_t span, ptrdiff_t begin, size_t size);
