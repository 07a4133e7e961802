/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/table.h - declares every primitive of the table
 *
 * A file that implements primitives exports each as one const struct; table.c lists them in the
 * order of preference, most of them by the lists below, in which each takes a line.
 */
#pragma once

#include "kernels/primitive.h"

/* references: one for every operator of model/operators.h, in ref/ */
#define KRN_DECLARE_REFERENCE(kind, name, fold, traits)                                            \
    extern const struct krn_primitive krn_##name##__ref;
MDL_OPERATORS(KRN_DECLARE_REFERENCE)
#undef KRN_DECLARE_REFERENCE

/* compiled once per instruction set: suffix __vec (portable), __avx2, __avx512 */
#define KRN_ISA_PRIMITIVES(X, isa)                                                                 \
    X(krn_affine_f32_nhwc__##isa)                                                                  \
    X(krn_arg_f32__##isa)                                                                          \
    X(krn_attention_f32__##isa)                                                                    \
    X(krn_avg_pool_f32_nhwc__##isa)                                                                \
    X(krn_avg_pool_f32_nchw__##isa)                                                                \
    X(krn_binary_f32__##isa)                                                                       \
    X(krn_conv_f32_nhwc_dw__##isa)                                                                 \
    X(krn_conv_f32_nhwc_dw_pw__##isa)                                                              \
    X(krn_conv_f32_nhwc_grouped__##isa)                                                            \
    X(krn_conv_f32_nhwc_wino6__##isa)                                                              \
    X(krn_conv_f32_nhwc_wino4__##isa)                                                              \
    X(krn_conv_f32_nhwc_wino2__##isa)                                                              \
    X(krn_conv_f32_nhwc_wino2_5x5__##isa)                                                          \
    X(krn_conv_f32_nhwc_wino4_1x3__##isa)                                                          \
    X(krn_conv_f32_nhwc_wino4_1x5__##isa)                                                          \
    X(krn_conv_f32_nhwc_wino4_1x7__##isa)                                                          \
    X(krn_conv_f32_nhwc_strassen__##isa)                                                           \
    X(krn_conv_f32_nhwc_stem__##isa)                                                               \
    X(krn_conv_f32_nhwc_igemm__##isa)                                                              \
    X(krn_conv_f32_nhwc_pw_dw__##isa)                                                              \
    X(krn_conv_f32_nhwc_stem_pool__##isa)                                                          \
    X(krn_conv_transpose_f32_nhwc__##isa)                                                          \
    X(krn_copy_conv_f32_stem__##isa)                                                               \
    X(krn_deform_columns_f32_nhwc__##isa)                                                          \
    X(krn_gemm_f32_igemm__##isa)                                                                   \
    X(krn_grid_sample_f32_nhwc__##isa)                                                             \
    X(krn_lrn_f32_nhwc__##isa)                                                                     \
    X(krn_matmul_f32_batch__##isa)                                                                 \
    X(krn_matmul_f32_igemm__##isa)                                                                 \
    X(krn_max_pool_f32_nhwc__##isa)                                                                \
    X(krn_max_pool_f32_nchw__##isa)                                                                \
    X(krn_nms_f32__##isa)                                                                          \
    X(krn_norm_f32_nhwc__##isa)                                                                    \
    X(krn_norm_f32_rows__##isa)                                                                    \
    X(krn_prelu_f32__##isa)                                                                        \
    X(krn_recurrent_f32__##isa)                                                                    \
    X(krn_reduce_f32_nhwc_mean__##isa)                                                             \
    X(krn_reduce_f32_rows__##isa)                                                                  \
    X(krn_resize_f32_nhwc__##isa)                                                                  \
    X(krn_resize_f32_nhwc_wide__##isa)                                                             \
    X(krn_roi_align_f32_nhwc__##isa)                                                               \
    X(krn_softmax_f32_last__##isa)                                                                 \
    X(krn_unary_f32__##isa)

/* on quantised values; KRN_DOT_PRIMITIVES also by dot products of bytes: suffix __avxvnni,
 * __avx512vnni. F(4x4) never pays if bytes multiply four times as fast as 16-bit values, as with
 * __dotprod. */
#define KRN_DIRECT_DOT_PRIMITIVES(X, isa)                                                          \
    X(krn_conv_i8_nhwc_igemm__##isa)                                                               \
    X(krn_gemm_i8_igemm__##isa)                                                                    \
    X(krn_matmul_i8_igemm__##isa)
#define KRN_DOT_PRIMITIVES(X, isa)                                                                 \
    X(krn_conv_i8_nhwc_f4x4__##isa)                                                                \
    KRN_DIRECT_DOT_PRIMITIVES(X, isa)
#define KRN_QUANT_PRIMITIVES(X, isa)                                                               \
    X(krn_avg_pool_i8_nhwc__##isa)                                                                 \
    X(krn_binary_i8_add__##isa)                                                                    \
    X(krn_conv_i8_nhwc_dw__##isa)                                                                  \
    X(krn_dequantize_i8__##isa)                                                                    \
    X(krn_max_pool_i8_nhwc__##isa)                                                                 \
    X(krn_quantize_i8__##isa)

#define KRN_DECLARE_PRIMITIVE(name) extern const struct krn_primitive name;
KRN_ISA_PRIMITIVES(KRN_DECLARE_PRIMITIVE, vec)
KRN_ISA_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx2)
KRN_ISA_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx512)
KRN_QUANT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, vec)
KRN_QUANT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx2)
KRN_QUANT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx512)
KRN_DOT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, vec)
KRN_DOT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx2)
KRN_DOT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx512)
KRN_DOT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avxvnni)
KRN_DOT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, avx512vnni)
KRN_DIRECT_DOT_PRIMITIVES(KRN_DECLARE_PRIMITIVE, dotprod)
KRN_DECLARE_PRIMITIVE(krn_conv_i8_nhwc_dw_dot__avx512vnni)
KRN_DECLARE_PRIMITIVE(krn_conv_i8_nhwc_dw_dot__avxvnni)

/* over OpenBLAS; and what moves bytes, the same for every CPU */
#define KRN_PLAIN_PRIMITIVES(X)                                                                    \
    X(krn_conv_f32_nhwc__blas)                                                                     \
    X(krn_conv_f32_nchw__blas)                                                                     \
    X(krn_conv_f32_nchw_kn2row__blas)                                                              \
    X(krn_gemm_f32__blas)                                                                          \
    X(krn_matmul_f32__blas)                                                                        \
    X(krn_copy_any__tiled)                                                                         \
    X(krn_copy_f32_to_nchw__any)                                                                   \
    X(krn_copy_f32_from_nchw__any)                                                                 \
    X(krn_pad_f32__tiled)
KRN_PLAIN_PRIMITIVES(KRN_DECLARE_PRIMITIVE)

/* over oneDNN, if the build has it */
#define KRN_DNNL_PRIMITIVES(X)                                                                     \
    X(krn_conv_f32_nhwc__dnnl)                                                                     \
    X(krn_conv_f32_nhwc_wino__dnnl)                                                                \
    X(krn_conv_f32_nhwc_bf16__dnnl)                                                                \
    X(krn_gemm_f32__dnnl)                                                                          \
    X(krn_matmul_f32__dnnl)                                                                        \
    X(krn_conv_i8_nhwc__dnnl)                                                                      \
    X(krn_gemm_i8__dnnl)                                                                           \
    X(krn_matmul_i8__dnnl)
KRN_DNNL_PRIMITIVES(KRN_DECLARE_PRIMITIVE)

/* over XNNPACK, if the build has it; its max pool for x86 loses NaN: of maxps, the second operand
 * decides */
#ifdef __x86_64__
#define KRN_XNN_MAX_POOL(X)
#else
#define KRN_XNN_MAX_POOL(X) X(krn_max_pool_f32_nhwc__xnn)
#endif
#define KRN_XNN_PRIMITIVES(X)                                                                      \
    KRN_XNN_MAX_POOL(X)                                                                            \
    X(krn_avg_pool_f32_nhwc__xnn)                                                                  \
    X(krn_binary_f32__xnn)                                                                         \
    X(krn_conv_f32_nhwc__xnn)                                                                      \
    X(krn_gemm_f32__xnn)                                                                           \
    X(krn_matmul_f32__xnn)                                                                         \
    X(krn_prelu_f32__xnn)                                                                          \
    X(krn_reduce_f32_nhwc_mean__xnn)                                                               \
    X(krn_unary_f32__xnn)
KRN_XNN_PRIMITIVES(KRN_DECLARE_PRIMITIVE)
#undef KRN_DECLARE_PRIMITIVE
