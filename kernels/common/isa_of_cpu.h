/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/isa_of_cpu.h - selects the build of a function to call, for code that is compiled
 * once
 */
#pragma once

#include "kernels/common/cpu.h"

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

/* KRN_OF_CPU(fn) - fn__vec, fn__avx2 or fn__avx512, whichever has the widest vectors that this
 * build and this CPU support. Threads: any. */
#define KRN_OF_CPU(fn) KRN_OR_AVX512(fn, KRN_OR_AVX2(fn, fn##__vec))
