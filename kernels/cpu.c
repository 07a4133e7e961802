/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

uint32_t krn_cpu_features(void)
{
    uint32_t have = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        have |= KRN_CPU_AVX2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        have |= KRN_CPU_AVX512;
    }
#elif defined(__aarch64__)
    have |= KRN_CPU_NEON; /* part of the base architecture */
#endif
    return have;
}
