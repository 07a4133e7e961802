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

#include <errno.h>
#include <stdatomic.h>
#include <xnnpack.h>

#include "kernels/common/conv_common.h"

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

/* ---- by either interface ---- */

/*
 * The earlier interface (xnn_2022.c) takes shapes when an operator is made and together with its
 * tensors; each elementwise operator has its own function. The later one (xnn_2024.c) takes shapes
 * and tensors separately; one function makes all elementwise operators. The build compiles one of
 * the two files.
 *
 * make functions make an operator and copy its weights; call setup before each run. All return 0,
 * -ENOMEM or -EOPNOTSUPP. A setup that succeeded once succeeds again.
 */

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
/** ADD and SUB: denormals are 0 to XNNPACK, which products and quotients may turn into anything */
int krn_xnn_make_binary(enum mdl_binary which, xnn_operator_t *ret);
int krn_xnn_setup_binary(xnn_operator_t x, enum mdl_binary which, const struct krn_xnn_shapes *s,
                         const float *a, const float *b, float *out, pthreadpool_t pool);
