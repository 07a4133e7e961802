/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/transpose.h"

#include "kernels/kernels.h"

void krn_transpose_run(const struct krn_transpose *t)
{
    krn_transpose_fn *run = krn_transpose_run__vec;

#ifdef KRN_HAVE_AVX2
    if (krn_cpu_features() & KRN_CPU_AVX2) {
        run = krn_transpose_run__avx2;
    }
#endif
#ifdef KRN_HAVE_AVX512
    if (krn_cpu_features() & KRN_CPU_AVX512) {
        run = krn_transpose_run__avx512;
    }
#endif
    run(t);
}
