/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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
    if (__builtin_cpu_supports("avxvnni")) {
        have |= KRN_CPU_AVXVNNI;
    }
    if (__builtin_cpu_supports("avx512vnni")) {
        have |= KRN_CPU_AVX512VNNI;
    }
#elif defined(__aarch64__)
    have |= KRN_CPU_NEON; /* part of the base architecture */
    if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) {
        have |= KRN_CPU_DOTPROD;
    }
#endif
    return have;
}
