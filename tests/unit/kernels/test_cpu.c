/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What krn_cpu_features() finds, against what the kernel says in /proc/cpuinfo: the kernel leaves
 * out instructions whose registers it does not save. PIPED_TEST_CPU=avx2,avx512,... says it in its
 * place, where that file is of another machine or itself to be tested.
 */
#include <stdbool.h>

#include "base.h"
#include "kernels/kernels.h"
#include "tests/harness.h"

static const struct {
    const char *name, *flags[4]; /* of /proc/cpuinfo */
    uint32_t feature;
} known[] = {
#if defined(__x86_64__)
    {"avx2", {"avx2", "fma"}, KRN_CPU_AVX2},
    {"avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl"}, KRN_CPU_AVX512},
    {"avxvnni", {"avx_vnni"}, KRN_CPU_AVXVNNI},
    {"avx512vnni", {"avx512_vnni"}, KRN_CPU_AVX512VNNI},
#elif defined(__aarch64__)
    {"neon", {"asimd"}, KRN_CPU_NEON},
    {"dotprod", {"asimddp"}, KRN_CPU_DOTPROD},
#else
    {"none", {"none"}, 0},
#endif
};

/* Return: whether @word stands in @text between separators */
static bool holds(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at += n) {
        if ((at == text || strchr(" ,\t:", at[-1])) && strchr(" ,\n", at[n])) {
            return true;
        }
    }
    return false;
}

/* The line of the first CPU. Return: false if there is none. */
static bool read_flags(char *line, size_t size)
{
    FILE *f = fopen("/proc/cpuinfo", "re");
    bool found = false;

    while (f && !found && fgets(line, (int)size, f)) {
        found = strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0;
    }
    if (f) {
        fclose(f);
    }
    return found;
}

TEST(features_are_what_the_kernel_says)
{
    const char *said = getenv("PIPED_TEST_CPU");
    uint32_t want = 0;
    char line[8192];

    if (!said && !read_flags(line, sizeof(line))) {
        T_SKIP("no flags in /proc/cpuinfo");
    }
    for (size_t i = 0; i < base_array_count(known); i++) {
        bool all = !said || holds(said, known[i].name);

        for (size_t f = 0; !said && f < base_array_count(known[i].flags) && known[i].flags[f];
             f++) {
            all &= holds(line, known[i].flags[f]);
        }
        want |= all ? known[i].feature : 0;
    }
    T_EQ(krn_cpu_features(), want);
}

TEST(rows_want_nothing_that_is_not_a_feature)
{
    size_t count;
    const struct krn_variant *v = krn_variants(&count);
    uint32_t all = 0;

    for (size_t i = 0; i < base_array_count(known); i++) {
        all |= known[i].feature;
    }
    for (size_t i = 0; i < count; i++) {
        T_EQ(v[i].needs & ~all, 0);
    }
}

TEST_MAIN()
