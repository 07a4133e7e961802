/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/cpu.h"

#include <pthread.h>

#include "base/base.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

/* Older ones first: a name, its own feature, and all features that it implies. The first is the
 * architecture's baseline. */
#define AVX512 (KRN_CPU_AVX2 | KRN_CPU_AVX512)
#define AVX512VNNI (AVX512 | KRN_CPU_AVX512VNNI)
#define AVX512BF16 (AVX512VNNI | KRN_CPU_AVX512BF16)
static const struct {
    const char *name;
    uint32_t own, all;
} known[] = {
#if defined(__x86_64__) || defined(__i386__)
    {"sse2", 0, 0},
    {"avx2", KRN_CPU_AVX2, KRN_CPU_AVX2},
    {"avxvnni", KRN_CPU_AVXVNNI, KRN_CPU_AVX2 | KRN_CPU_AVXVNNI},
    {"avx512", KRN_CPU_AVX512, AVX512},
    {"avx512vnni", KRN_CPU_AVX512VNNI, AVX512VNNI},
    {"avx512bf16", KRN_CPU_AVX512BF16, AVX512BF16},
    {"amx", KRN_CPU_AMX, AVX512BF16 | KRN_CPU_AMX},
#elif defined(__aarch64__)
    {"neon", KRN_CPU_NEON, KRN_CPU_NEON},
    {"dotprod", KRN_CPU_DOTPROD, KRN_CPU_NEON | KRN_CPU_DOTPROD},
    {"i8mm", KRN_CPU_I8MM, KRN_CPU_NEON | KRN_CPU_DOTPROD | KRN_CPU_I8MM},
#else
    {"base", 0, 0},
#endif
};

static struct {
    uint32_t has, allowed;
    int error;
    char text[KRN_CPU_TEXT_MAX];
} cpu;

#if defined(__x86_64__) || defined(__i386__)
static bool bit(unsigned reg, unsigned number)
{
    return reg >> number & 1;
}

/* Features that clang 14 cannot name. AMX also needs the kernel to save its registers (XCR0). */
static uint32_t by_cpuid(void)
{
    unsigned a, b, c, d;
    uint32_t have = 0;

    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && bit(a, 4)) {
        have |= KRN_CPU_AVXVNNI;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && bit(d, 22) && bit(d, 24) && bit(d, 25)) {
        unsigned low, high;

        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        have |= bit(low, 17) && bit(low, 18) ? KRN_CPU_AMX : 0;
    }
    return have;
}
#endif

static uint32_t detect(void)
{
    uint32_t have = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        have |= KRN_CPU_AVX2 | by_cpuid();
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        have |= KRN_CPU_AVX512;
    }
    if (__builtin_cpu_supports("avx512vnni")) {
        have |= KRN_CPU_AVX512VNNI;
    }
    if (__builtin_cpu_supports("avx512bf16")) {
        have |= KRN_CPU_AVX512BF16;
    }
#elif defined(__aarch64__)
    have |= KRN_CPU_NEON; /* part of the base architecture */
    if (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) {
        have |= KRN_CPU_DOTPROD;
    }
    if (getauxval(AT_HWCAP2) & HWCAP2_I8MM) {
        have |= KRN_CPU_I8MM;
    }
#endif
    return have;
}

static void read_once(void)
{
    const char *names = getenv("PIPED_CPU");

    cpu.has = detect();
    cpu.allowed = cpu.has;
    if (names && *names) {
        cpu.allowed = known[0].all;
        cpu.error = krn_cpu_parse(names, &cpu.allowed, cpu.text);
    }
}

static void read_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_once);
}

uint32_t krn_cpu_features(void)
{
    read_environment();
    return cpu.has & cpu.allowed;
}

bool krn_cpu_narrowed(void)
{
    read_environment();
    return cpu.has & ~cpu.allowed;
}

int krn_cpu_check(char ret_error[KRN_CPU_TEXT_MAX])
{
    read_environment();
    if (cpu.error < 0) {
        memcpy(ret_error, cpu.text, sizeof(cpu.text));
    }
    return cpu.error;
}

/* Return: the number of names in @known that are that of @text[@length], its index in @ret. */
static bool find(const char *text, size_t length, size_t *ret)
{
    for (size_t i = 0; i < base_array_count(known); i++) {
        if (strlen(known[i].name) == length && memcmp(text, known[i].name, length) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

int krn_cpu_parse(const char *names, uint32_t *ret_features, char ret_error[KRN_CPU_TEXT_MAX])
{
    uint32_t features = known[0].all;

    for (const char *at = names;; at++) {
        size_t length = strcspn(at, ","), i;

        if (!find(at, length, &i)) {
            snprintf(ret_error, KRN_CPU_TEXT_MAX,
                     "PIPED_CPU: no CPU feature \"%.*s\"; "
                     "known are",
                     (int)base_min(length, 64u), at);

            for (i = 0; i < base_array_count(known); i++) {
                base_append(ret_error, KRN_CPU_TEXT_MAX, "%s %s", i ? "," : "", known[i].name);
            }
            return -EINVAL;
        }
        features |= known[i].all;
        at += length;
        if (*at == '\0') {
            *ret_features = features;
            return 0;
        }
    }
}

const char *krn_cpu_names(uint32_t features, char ret[KRN_CPU_TEXT_MAX])
{
    snprintf(ret, KRN_CPU_TEXT_MAX, "%s", known[0].name);
    for (size_t i = 1; i < base_array_count(known); i++) {
        if (features & known[i].own) {
            base_append(ret, KRN_CPU_TEXT_MAX, ",%s", known[i].name);
        }
    }
    return ret;
}
