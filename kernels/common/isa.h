/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/isa.h - the instruction set that this source file is compiled for
 *
 * A file that includes this is compiled once for each instruction set (kernels/meson.build). Its
 * exported symbols end in the name of the set: KRN_ISA_FN(name) is name__avx512.
 */
#pragma once

#include "kernels/common/cpu.h"

#ifndef KRN_ISA
#define KRN_ISA vec
#endif
#define KRN_PASTE_(a, b) a##__##b
#define KRN_PASTE(a, b) KRN_PASTE_(a, b)
#define KRN_ISA_FN(name) KRN_PASTE(name, KRN_ISA)

#define KRN_TEXT_(x) #x
#define KRN_TEXT(x) KRN_TEXT_(x)
#define KRN_ISA_TEXT KRN_TEXT(KRN_ISA) /* for primitive names */

/* KRN_VL: lanes of 4 bytes in a vector. KRN_ISA_NEEDS: the CPU features required. */
#if defined(__AVX512F__)
#define KRN_VL 16
#define KRN_ISA_NEEDS (KRN_CPU_AVX2 | KRN_CPU_AVX512)
#elif defined(__AVX2__)
#define KRN_VL 8
#define KRN_ISA_NEEDS KRN_CPU_AVX2
#else
#define KRN_VL 4
#define KRN_ISA_NEEDS 0
#endif
