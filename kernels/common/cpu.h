/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/common/cpu.h - which CPU features may be used in this process
 *
 * A primitive's table entry lists the features it needs in .needs. krn_usable(), the tests and the
 * benches compare that with krn_cpu_features(); nothing else tests for features.
 *
 * The environment variable PIPED_CPU restricts the features, so that one machine can stand in for
 * an older one. It is a comma-separated list of names. Each name allows a feature and all features
 * that it implies. oneDNN obeys it (kernels/lib/onednn.c). OpenBLAS must be told before it is
 * loaded (kernels/lib/blas.h). XNNPACK ignores it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum krn_cpu {
    KRN_CPU_AVX2 = 1u << 0,   /* AVX2 and FMA */
    KRN_CPU_AVX512 = 1u << 1, /* F, BW, DQ, VL */
    KRN_CPU_NEON = 1u << 2,
    KRN_CPU_AVXVNNI = 1u << 3,    /* VEX-encoded dot products of bytes */
    KRN_CPU_AVX512VNNI = 1u << 4, /* the same with vectors of 512 bits */
    KRN_CPU_DOTPROD = 1u << 5,    /* Arm: dot products of bytes */
    KRN_CPU_AVX512BF16 = 1u << 6, /* dot products of bf16 */
    KRN_CPU_AMX = 1u << 7,        /* TILE, INT8, BF16 */
    KRN_CPU_I8MM = 1u << 8,       /* Arm: products of matrices of bytes */
};

#define KRN_CPU_TEXT_MAX 256u /* room for a list of all names, or a message with such a list */

/** krn_cpu_features() - Return: the features that the CPU has and PIPED_CPU allows, enum krn_cpu
 * bits. If krn_cpu_check() fails: the architecture's baseline. Read once. Threads: any. */
uint32_t krn_cpu_features(void);

/** krn_cpu_narrowed() - Return: whether PIPED_CPU excludes a feature that the CPU has. Threads:
 * any. */
bool krn_cpu_narrowed(void);

/** krn_cpu_check() - checks PIPED_CPU; programs call it when they start. Return: 0, -EINVAL
 * (PIPED_CPU has an unknown name; @ret_error lists the known ones). Threads: any. */
int krn_cpu_check(char ret_error[KRN_CPU_TEXT_MAX]);

/** krn_cpu_parse() - the features that a list of names allows, whether this CPU has them or not.
 * Return: as krn_cpu_check(). */
int krn_cpu_parse(const char *names, uint32_t *ret_features, char ret_error[KRN_CPU_TEXT_MAX]);

/** krn_cpu_names() - writes @features as such a list, older ones first. Return: @ret. */
const char *krn_cpu_names(uint32_t features, char ret[KRN_CPU_TEXT_MAX]);

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
