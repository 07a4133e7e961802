/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "base/base.h"
#include "kernels/table.h"

#define PRIMITIVE(name) &name,
#define REFERENCE(kind, name, fold, traits) &krn_##name##__ref,

/* The order is the static preference: the first usable primitive of an op's kind is taken. So fast
 * primitives come first, ISA primitives before their portable fallback, references last. */
/* clang-format off */
static const struct krn_primitive *const all[] = {
#ifdef KRN_HAVE_VNNI
    PRIMITIVE(krn_conv_i8_nhwc_dw_dot__avx512vnni)
    PRIMITIVE(krn_conv_i8_nhwc_dw_dot__avxvnni)
#endif
#ifdef KRN_HAVE_AVX512
    KRN_QUANT_PRIMITIVES(PRIMITIVE, avx512)
#endif
#ifdef KRN_HAVE_AVX2
    KRN_QUANT_PRIMITIVES(PRIMITIVE, avx2)
#endif
#ifdef KRN_HAVE_VNNI
    KRN_DOT_PRIMITIVES(PRIMITIVE, avx512vnni)
    KRN_DOT_PRIMITIVES(PRIMITIVE, avxvnni)
#endif
#ifdef KRN_HAVE_AVX512
    KRN_DOT_PRIMITIVES(PRIMITIVE, avx512)
#endif
#ifdef KRN_HAVE_AVX2
    KRN_DOT_PRIMITIVES(PRIMITIVE, avx2)
#endif
#ifdef KRN_HAVE_AVX512
    KRN_ISA_PRIMITIVES(PRIMITIVE, avx512)
#endif
#ifdef KRN_HAVE_AVX2
    KRN_ISA_PRIMITIVES(PRIMITIVE, avx2)
#endif
#ifdef KRN_HAVE_DNNL
    KRN_DNNL_PRIMITIVES(PRIMITIVE)
#endif
#ifdef KRN_HAVE_XNNPACK
    KRN_XNN_PRIMITIVES(PRIMITIVE)
#endif
    KRN_PLAIN_PRIMITIVES(PRIMITIVE)
    KRN_QUANT_PRIMITIVES(PRIMITIVE, vec)
#ifdef KRN_HAVE_ARM_DOT
    KRN_DIRECT_DOT_PRIMITIVES(PRIMITIVE, dotprod)
#endif
    KRN_DOT_PRIMITIVES(PRIMITIVE, vec)
    KRN_ISA_PRIMITIVES(PRIMITIVE, vec)
    MDL_OPERATORS(REFERENCE)
};
/* clang-format on */

/* krn_primitives() promises an array of structs, and C cannot initialise one from structs of other
 * files: the first call copies them. */
static struct krn_primitive table[base_array_count(all)];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (size_t i = 0; i < base_array_count(all); i++) {
        table[i] = *all[i];
    }
}

const struct krn_primitive *krn_primitives(size_t *ret_count)
{
    pthread_once(&once, fill);
    *ret_count = base_array_count(all);
    return table;
}
