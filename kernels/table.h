/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/variants.h - every row of the variant table, by name; for kernels/table.c only
 *
 * A file that implements primitives exports each as one const struct; table.c lists them. Adding a
 * primitive is one line here and one line there.
 */
#pragma once

#include "kernels/kernels.h"

/* references: ref_*.c */
extern const struct krn_variant krn_affine__ref;
extern const struct krn_variant krn_arg__ref;
extern const struct krn_variant krn_avg_pool__ref;
extern const struct krn_variant krn_binary__ref;
extern const struct krn_variant krn_conv__ref;
extern const struct krn_variant krn_conv_transpose__ref;
extern const struct krn_variant krn_copy__ref;
extern const struct krn_variant krn_dequantize__ref;
extern const struct krn_variant krn_gather__ref;
extern const struct krn_variant krn_gemm__ref;
extern const struct krn_variant krn_lrn__ref;
extern const struct krn_variant krn_matmul__ref;
extern const struct krn_variant krn_max_pool__ref;
extern const struct krn_variant krn_pad__ref;
extern const struct krn_variant krn_prelu__ref;
extern const struct krn_variant krn_quantize__ref;
extern const struct krn_variant krn_reduce__ref;
extern const struct krn_variant krn_resize__ref;
extern const struct krn_variant krn_softmax__ref;
extern const struct krn_variant krn_unary__ref;
extern const struct krn_variant krn_where__ref;

/* compiled once per instruction set: suffix __vec (portable), __avx2, __avx512 */
#define KRN_ISA_VARIANTS(X, isa)                                                                   \
    X(krn_affine_f32_nhwc__##isa)                                                                  \
    X(krn_avg_pool_f32_nhwc__##isa)                                                                \
    X(krn_avg_pool_f32_nchw__##isa)                                                                \
    X(krn_binary_f32__##isa)                                                                       \
    X(krn_conv_f32_nhwc_dw__##isa)                                                                 \
    X(krn_conv_f32_nhwc_dw_pw__##isa)                                                              \
    X(krn_conv_f32_nhwc_grouped__##isa)                                                            \
    X(krn_conv_f32_nhwc_wino6__##isa)                                                              \
    X(krn_conv_f32_nhwc_wino4__##isa)                                                              \
    X(krn_conv_f32_nhwc_wino2__##isa)                                                              \
    X(krn_conv_f32_nhwc_strassen__##isa)                                                           \
    X(krn_conv_f32_nhwc_igemm__##isa)                                                              \
    X(krn_conv_f32_nhwc_pw_dw__##isa)                                                              \
    X(krn_conv_transpose_f32_nhwc__##isa)                                                          \
    X(krn_copy_conv_f32_planes__##isa)                                                             \
    X(krn_gemm_f32_igemm__##isa)                                                                   \
    X(krn_lrn_f32_nhwc__##isa)                                                                     \
    X(krn_matmul_f32_igemm__##isa)                                                                 \
    X(krn_max_pool_f32_nhwc__##isa)                                                                \
    X(krn_max_pool_f32_nchw__##isa)                                                                \
    X(krn_prelu_f32__##isa)                                                                        \
    X(krn_reduce_f32_nhwc_mean__##isa)                                                             \
    X(krn_resize_f32_nhwc__##isa)                                                                  \
    X(krn_softmax_f32_last__##isa)                                                                 \
    X(krn_unary_f32__##isa)

/* on quantised values; those of KRN_DOT_VARIANTS also on dot products of bytes: suffix __avxvnni,
 * __avx512vnni. F(4x4) never pays where bytes are multiplied four times as fast as 16 bits, as with
 * __dotprod. */
#define KRN_DIRECT_DOT_VARIANTS(X, isa)                                                            \
    X(krn_conv_i8_nhwc_igemm__##isa)                                                               \
    X(krn_gemm_i8_igemm__##isa)                                                                    \
    X(krn_matmul_i8_igemm__##isa)
#define KRN_DOT_VARIANTS(X, isa)                                                                   \
    X(krn_conv_i8_nhwc_f4x4__##isa)                                                                \
    KRN_DIRECT_DOT_VARIANTS(X, isa)
#define KRN_QUANT_VARIANTS(X, isa)                                                                 \
    X(krn_avg_pool_i8_nhwc__##isa)                                                                 \
    X(krn_binary_i8_add__##isa)                                                                    \
    X(krn_conv_i8_nhwc_dw__##isa)                                                                  \
    X(krn_dequantize_i8__##isa)                                                                    \
    X(krn_max_pool_i8_nhwc__##isa)                                                                 \
    X(krn_quantize_i8__##isa)

#define KRN_DECLARE_VARIANT(name) extern const struct krn_variant name;
KRN_ISA_VARIANTS(KRN_DECLARE_VARIANT, vec)
KRN_ISA_VARIANTS(KRN_DECLARE_VARIANT, avx2)
KRN_ISA_VARIANTS(KRN_DECLARE_VARIANT, avx512)
KRN_QUANT_VARIANTS(KRN_DECLARE_VARIANT, vec)
KRN_QUANT_VARIANTS(KRN_DECLARE_VARIANT, avx2)
KRN_QUANT_VARIANTS(KRN_DECLARE_VARIANT, avx512)
KRN_DOT_VARIANTS(KRN_DECLARE_VARIANT, vec)
KRN_DOT_VARIANTS(KRN_DECLARE_VARIANT, avx2)
KRN_DOT_VARIANTS(KRN_DECLARE_VARIANT, avx512)
KRN_DOT_VARIANTS(KRN_DECLARE_VARIANT, avxvnni)
KRN_DOT_VARIANTS(KRN_DECLARE_VARIANT, avx512vnni)
KRN_DIRECT_DOT_VARIANTS(KRN_DECLARE_VARIANT, dotprod)

/* over OpenBLAS */
extern const struct krn_variant krn_conv_f32_nhwc__blas;
extern const struct krn_variant krn_conv_f32_nchw__blas;
extern const struct krn_variant krn_conv_f32_nchw_kn2row__blas;
extern const struct krn_variant krn_gemm_f32__blas;
extern const struct krn_variant krn_matmul_f32__blas;

/* over oneDNN, where it was there at build */
#define KRN_DNNL_VARIANTS(X)                                                                       \
    X(krn_conv_f32_nhwc__dnnl)                                                                     \
    X(krn_conv_f32_nhwc_wino__dnnl)                                                                \
    X(krn_conv_f32_nhwc_bf16__dnnl)                                                                \
    X(krn_gemm_f32__dnnl)                                                                          \
    X(krn_matmul_f32__dnnl)                                                                        \
    X(krn_conv_i8_nhwc__dnnl)                                                                      \
    X(krn_gemm_i8__dnnl)                                                                           \
    X(krn_matmul_i8__dnnl)
KRN_DNNL_VARIANTS(KRN_DECLARE_VARIANT)

/* over XNNPACK, where it was there at build */
#define KRN_XNN_VARIANTS(X)                                                                        \
    X(krn_avg_pool_f32_nhwc__xnn)                                                                  \
    X(krn_binary_f32__xnn)                                                                         \
    X(krn_conv_f32_nhwc__xnn)                                                                      \
    X(krn_gemm_f32__xnn)                                                                           \
    X(krn_matmul_f32__xnn)                                                                         \
    X(krn_max_pool_f32_nhwc__xnn)                                                                  \
    X(krn_prelu_f32__xnn)                                                                          \
    X(krn_reduce_f32_nhwc_mean__xnn)                                                               \
    X(krn_unary_f32__xnn)
KRN_XNN_VARIANTS(KRN_DECLARE_VARIANT)

/* bytes moved, for every CPU alike */
extern const struct krn_variant krn_copy_any__tiled;
extern const struct krn_variant krn_copy_f32_to_nchw__any;
extern const struct krn_variant krn_copy_f32_from_nchw__any;
extern const struct krn_variant krn_pad_f32__tiled;
#undef KRN_DECLARE_VARIANT
