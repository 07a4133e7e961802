/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/planned.h - macros for the functions that are alike in all primitives
 *
 * Most primitives have a struct that describes how they run an op, and a function that fills it:
 * bool OF(const struct mdl_model *m, const struct mdl_op *op, TYPE *ret), which returns false if
 * they cannot run it. From these two the macros define the functions of struct krn_primitive. BYTES
 * is an expression that may use the filled struct, called p.
 */
#pragma once

#include "base/base.h"
#include "kernels/primitive.h"

/** KRN_SUPPORTS_BY() - supports(): whether OF succeeds */
#define KRN_SUPPORTS_BY(TYPE, OF)                                                                  \
    static bool supports(const struct mdl_model *m, const struct mdl_op *op)                       \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p);                                                                      \
    }

/** KRN_PACKED_BYTES_BY() - packed_bytes() */
#define KRN_PACKED_BYTES_BY(TYPE, OF, BYTES)                                                       \
    static size_t packed_bytes(const struct mdl_model *m, const struct mdl_op *op)                 \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) ? (BYTES) : 0;                                                        \
    }

/** KRN_SCRATCH_BYTES_BY() - scratch_bytes(): @BYTES for each member of a team */
#define KRN_SCRATCH_BYTES_BY(TYPE, OF, BYTES)                                                      \
    static size_t scratch_bytes(const struct mdl_model *m, const struct mdl_op *op, size_t width)  \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) ? base_max(width, 1u) * (BYTES) : 0;                                  \
    }

/** KRN_RUN_ROWS_BY() - run(): calls ROWS for the lines of NEST, a member of the struct whose member
 * call is this call (kernels/common/nest.h) */
#define KRN_RUN_ROWS_BY(TYPE, OF, NEST, ROWS)                                                      \
    static void run(const struct krn_call *call)                                                   \
    {                                                                                              \
        TYPE p = {.call = call};                                                                   \
                                                                                                   \
        if (OF(call->model, call->op, &p)) {                                                       \
            krn_nest_share(&p.NEST, call->pool, call->width, ROWS, &p);                            \
        }                                                                                          \
    }

/** KRN_RELEASE_BY() - release() of an object of malloc(): calls DEINIT(object), then free() */
#define KRN_RELEASE_BY(DEINIT)                                                                     \
    static void release(struct krn_prepared *p)                                                    \
    {                                                                                              \
        if (p->object) {                                                                           \
            DEINIT(p->object);                                                                     \
        }                                                                                          \
        free(p->object);                                                                           \
        *p = (struct krn_prepared){0};                                                             \
    }

/** KRN_PRODUCTS() - X for both kinds of op that are products of matrices: X("gemm" as a word, its
 * kind). The words make names of primitives. */
#define KRN_PRODUCTS(X) X(gemm, MDL_OP_GEMM) X(matmul, MDL_OP_MATMUL)
