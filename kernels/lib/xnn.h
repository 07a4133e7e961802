/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/xnn.h - XNNPACK operators for primitives of the table
 *
 * An XNNPACK operator holds its packed weights, which cannot be shared, and the addresses of its
 * tensors. So only one team can run it at a time, and each op keeps a few operators, which runs
 * take and return without a lock. One is made at load. A run that finds none makes another. So an
 * op has one copy of its weights for each team that ever ran it at the same time; otherwise nothing
 * is allocated.
 */
#pragma once

#include <stdatomic.h>

#include "kernels/lib/xnn_versions.h"

#define KRN_XNN_IDLE 16u /* operators that are kept */

/** krn_xnn_ready() - Return: whether the library works on this CPU. Threads: any. */
bool krn_xnn_ready(void);
/** krn_xnn_keeps_nan() - Return: whether clamping a result, even to infinite limits, keeps a NaN.
 * The x86 kernels of 2022 turn it into the lower limit. Threads: any. */
bool krn_xnn_keeps_nan(void);

struct krn_xnn {
    const struct mdl_model *m; /* borrowed */
    const struct mdl_op *op;
    /* makes one operator. Return: 0, -ENOMEM, -EOPNOTSUPP */
    int (*make)(const struct mdl_model *m, const struct mdl_op *op, xnn_operator_t *ret);
    float *constants; /* owned; read by operators in a run, or NULL */
    _Atomic(xnn_operator_t) idle[KRN_XNN_IDLE];
};

/** KRN_XNN_PREPARE() - defines NAME, a prepare() that makes operators by MAKE; TYPE, OF, BYTES: as
 * in kernels/common/planned.h; BYTES: weights per operator */
#define KRN_XNN_PREPARE(NAME, TYPE, OF, MAKE, BYTES)                                               \
    static int NAME(const struct mdl_model *m, const struct mdl_op *op, void *packed,              \
                    size_t width, struct krn_prepared *ret)                                        \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) ? krn_xnn_new(m, op, MAKE, BYTES, ret) : -EOPNOTSUPP;                 \
    }

/** krn_xnn_new() - makes the object with one operator. @bytes: weights per operator. Return: 0,
 * -ENOMEM, -EOPNOTSUPP. For the first call of prepare(); later calls need nothing. */
int krn_xnn_new(const struct mdl_model *m, const struct mdl_op *op,
                int (*make)(const struct mdl_model *m, const struct mdl_op *op,
                            xnn_operator_t *ret),
                size_t bytes, struct krn_prepared *ret);
void krn_xnn_release(struct krn_prepared *p);

/** krn_xnn_set_up() - ends a make() whose operator @x was first set up with krn_xnn_nowhere(),
 * which returned @r: frees it if that failed. Return: @r. */
int krn_xnn_set_up(xnn_operator_t x, int r, xnn_operator_t *ret);

xnn_operator_t krn_xnn_take(struct krn_xnn *x);

/** krn_xnn_nowhere() - Return: an input address for the first setup of an operator with an
 * indirection table. Later setups shift all pointers of the table but those to the zeros. No memory
 * lies at or after this address, so no pointer to a pixel is taken for one to the zeros. It is
 * never read. */
float *krn_xnn_nowhere(void);

/**
 * krn_xnn_finish() - runs @op, already set up, on the call's team and returns it; then applies @e,
 * the part of the epilogue that XNNPACK does not do
 * @y: the result, a flat image; NULL: @e is empty
 * @portable: for an operator without limits, else NULL: if XNNPACK does not keep NaN, an infinite
 * result may have been a NaN; then this primitive, which packs nothing, repeats the call, which may
 * be slow. @y is not NULL then.
 */
void krn_xnn_finish(const struct krn_call *c, xnn_operator_t op, const struct krn_epilogue *e,
                    const struct krn_img *y, const struct krn_primitive *portable);

/** krn_xnn_range() - expresses the element function as limits of the result. Return: false if that
 * is impossible or would lose a NaN; then there are no limits, and the epilogue applies the
 * function. */
bool krn_xnn_range(const struct mdl_op *op, float *ret_min, float *ret_max);
/** krn_xnn_rest() - Return: the part of @e that remains after shift and limits */
struct krn_epilogue krn_xnn_rest(const struct mdl_op *op, struct krn_epilogue e);
#ifdef __x86_64__
#define KRN_XNN_NEEDS KRN_CPU_AVX2 /* kernels for older CPUs read past the last value */
#else
#define KRN_XNN_NEEDS 0
#endif
#define KRN_XNN_STEP 4u /* vector length of kernels that read past the last value */
