/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/planned.h - macros for what is alike in all primitives: their entries of the
 * table, and functions
 *
 * Most primitives have a struct that describes how they run an op, and a function that fills it:
 * bool OF(const struct mdl_model *m, const struct mdl_op *op, TYPE *ret), which returns false if
 * they cannot run it. From these two the macros define the functions of struct krn_primitive,
 * called like its fields, or NAME where a file has several. BYTES is an expression that may use the
 * filled struct, called p.
 */
#pragma once

#include "base/base.h"
#include "kernels/primitive.h"

/** KRN_PRIMITIVE() - defines krn_NAME; ... sets other fields of struct krn_primitive */
#define KRN_PRIMITIVE(NAME, KIND, ...)                                                             \
    const struct krn_primitive krn_##NAME = {.name = #NAME, .kind = KIND, __VA_ARGS__}

/** KRN_ISA_PRIMITIVE() - the same in a file that is compiled for several instruction sets
 * (kernels/common/vec.h), whose name ends NAME. NEEDS: KRN_ISA_NEEDS or KRN_QUANT_NEEDS */
#define KRN_ISA_PRIMITIVE(NAME, KIND, NEEDS, ...)                                                  \
    const struct krn_primitive KRN_ISA_FN(krn_##NAME) = {                                          \
        .name = #NAME "__" KRN_ISA_TEXT, .kind = KIND, .needs = NEEDS, __VA_ARGS__}

/** KRN_SUPPORTS_BY() - supports(): whether OF succeeds */
#define KRN_SUPPORTS_BY(TYPE, OF) KRN_SUPPORTS_AS(supports, TYPE, OF)
#define KRN_SUPPORTS_AS(NAME, TYPE, OF)                                                            \
    static bool NAME(const struct mdl_model *m, const struct mdl_op *op)                           \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p);                                                                      \
    }

/** KRN_PACKED_BYTES_BY() - packed_bytes() */
#define KRN_PACKED_BYTES_BY(TYPE, OF, BYTES) KRN_PACKED_BYTES_AS(packed_bytes, TYPE, OF, BYTES)
#define KRN_PACKED_BYTES_AS(NAME, TYPE, OF, BYTES)                                                 \
    static size_t NAME(const struct mdl_model *m, const struct mdl_op *op)                         \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) ? (BYTES) : 0;                                                        \
    }

/** KRN_PACK_BY() - pack(): CALL, which may use m, op, dst and p */
#define KRN_PACK_BY(TYPE, OF, CALL) KRN_PACK_AS(pack, TYPE, OF, CALL)
#define KRN_PACK_AS(NAME, TYPE, OF, CALL)                                                          \
    static void NAME(const struct mdl_model *m, const struct mdl_op *op, void *dst)                \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        if (OF(m, op, &p)) {                                                                       \
            CALL;                                                                                  \
        }                                                                                          \
    }

/** KRN_SCRATCH_BYTES_BY() - scratch_bytes(): @BYTES for each member of a team */
#define KRN_SCRATCH_BYTES_BY(TYPE, OF, BYTES) KRN_SCRATCH_BYTES_AS(scratch_bytes, TYPE, OF, BYTES)
#define KRN_SCRATCH_BYTES_AS(NAME, TYPE, OF, BYTES)                                                \
    static size_t NAME(const struct mdl_model *m, const struct mdl_op *op, size_t width)           \
    {                                                                                              \
        TYPE p;                                                                                    \
                                                                                                   \
        return OF(m, op, &p) ? base_max(width, 1u) * (BYTES) : 0;                                  \
    }

/** KRN_RUN_PARTS_BY() - run(): calls PART for each member of the team with a TYPE. Its PLAN is what
 * OF fills, call and parts are this call and the number of members; ...: its other members */
#define KRN_RUN_PARTS_BY(TYPE, OF, PLAN, PART, ...)                                                \
    KRN_RUN_PARTS_AS(run, TYPE, OF, PLAN, PART, ##__VA_ARGS__)
#define KRN_RUN_PARTS_AS(NAME, TYPE, OF, PLAN, PART, ...)                                          \
    static void NAME(const struct krn_call *call)                                                  \
    {                                                                                              \
        TYPE j = {.call = call, .parts = base_max(call->width, 1u), __VA_ARGS__};                  \
                                                                                                   \
        if (OF(call->model, call->op, &j.PLAN)) {                                                  \
            krn_parallel(call->pool, j.parts, PART, &j);                                           \
        }                                                                                          \
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
