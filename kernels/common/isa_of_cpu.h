/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/isa_of_cpu.h - which build of a function to call, for code that is compiled once
 */
#pragma once

#include "kernels/kernels.h"

#ifdef KRN_HAVE_AVX512
#define KRN_OR_AVX512(fn, other) (krn_cpu_features() & KRN_CPU_AVX512 ? fn##__avx512 : (other))
#else
#define KRN_OR_AVX512(fn, other) (other)
#endif
#ifdef KRN_HAVE_AVX2
#define KRN_OR_AVX2(fn, other) (krn_cpu_features() & KRN_CPU_AVX2 ? fn##__avx2 : (other))
#else
#define KRN_OR_AVX2(fn, other) (other)
#endif

/* KRN_OF_CPU(fn) - of fn__vec, fn__avx2 and fn__avx512 that with the widest vectors that the build
 * and this CPU have. Threads: any. */
#define KRN_OF_CPU(fn) KRN_OR_AVX512(fn, KRN_OR_AVX2(fn, fn##__vec))
