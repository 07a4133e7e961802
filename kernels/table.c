/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "base.h"
#include "kernels/table.h"

#define ROW(name) &name,

/* The order is the static preference: the first usable row of an op's kind is taken, so fast rows
 * stand first, ISA rows before their portable fallback, references last. */
/* clang-format off */
static const struct krn_variant *const rows[] = {
#ifdef KRN_HAVE_AVX512
    KRN_QUANT_VARIANTS(ROW, avx512)
#endif
#ifdef KRN_HAVE_AVX2
    KRN_QUANT_VARIANTS(ROW, avx2)
#endif
#ifdef KRN_HAVE_VNNI
    KRN_DOT_VARIANTS(ROW, avx512vnni) /* a depthwise convolution is not for dot products */
    KRN_DOT_VARIANTS(ROW, avxvnni)
#endif
#ifdef KRN_HAVE_AVX512
    KRN_DOT_VARIANTS(ROW, avx512)
#endif
#ifdef KRN_HAVE_AVX2
    KRN_DOT_VARIANTS(ROW, avx2)
#endif
#ifdef KRN_HAVE_AVX512
    KRN_ISA_VARIANTS(ROW, avx512)
#endif
#ifdef KRN_HAVE_AVX2
    KRN_ISA_VARIANTS(ROW, avx2)
#endif
#ifdef KRN_HAVE_DNNL
    KRN_DNNL_VARIANTS(ROW)
#endif
#ifdef KRN_HAVE_XNNPACK
    KRN_XNN_VARIANTS(ROW)
#endif
    ROW(krn_conv_f32_nhwc__blas)
    ROW(krn_conv_f32_nchw__blas)
    ROW(krn_conv_f32_nchw_kn2row__blas)
    ROW(krn_gemm_f32__blas)
    ROW(krn_matmul_f32__blas)
    ROW(krn_copy_any__tiled)
    ROW(krn_copy_f32_to_nchw__any)
    ROW(krn_copy_f32_from_nchw__any)
    ROW(krn_pad_f32__tiled)
    KRN_QUANT_VARIANTS(ROW, vec)
#ifdef KRN_HAVE_ARM_DOT
    KRN_DIRECT_DOT_VARIANTS(ROW, dotprod)
#endif
    KRN_DOT_VARIANTS(ROW, vec)
    KRN_ISA_VARIANTS(ROW, vec)
    ROW(krn_affine__ref)
    ROW(krn_arg__ref)
    ROW(krn_avg_pool__ref)
    ROW(krn_binary__ref)
    ROW(krn_conv__ref)
    ROW(krn_conv_transpose__ref)
    ROW(krn_copy__ref)
    ROW(krn_dequantize__ref)
    ROW(krn_gather__ref)
    ROW(krn_gemm__ref)
    ROW(krn_lrn__ref)
    ROW(krn_matmul__ref)
    ROW(krn_max_pool__ref)
    ROW(krn_pad__ref)
    ROW(krn_prelu__ref)
    ROW(krn_quantize__ref)
    ROW(krn_reduce__ref)
    ROW(krn_resize__ref)
    ROW(krn_softmax__ref)
    ROW(krn_unary__ref)
    ROW(krn_where__ref)
};
/* clang-format on */

/* krn_variants() promises an array of structs, and C cannot initialise one from structs of other
 * files: it is copied together at the first call. */
static struct krn_variant table[base_array_count(rows)];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (size_t i = 0; i < base_array_count(rows); i++) {
        table[i] = *rows[i];
    }
}

const struct krn_variant *krn_variants(size_t *ret_count)
{
    pthread_once(&once, fill);
    *ret_count = base_array_count(rows);
    return table;
}
