/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What krn_cpu_features() finds, against what the kernel says in /proc/cpuinfo: the kernel leaves
 * out instructions whose registers it does not save. PIPED_TEST_CPU=avx2,avx512,... says it in its
 * place, where that file is of another machine or itself to be tested, or where PIPED_CPU leaves
 * less (tests/cpu_classes.py). And what PIPED_CPU does, in programs started for it: this one with
 * "show" prints what it has.
 */
#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/base.h"
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
    {"avx512bf16", {"avx512_bf16"}, KRN_CPU_AVX512BF16},
    {"amx", {"amx_tile", "amx_int8", "amx_bf16"}, KRN_CPU_AMX},
#elif defined(__aarch64__)
    {"neon", {"asimd"}, KRN_CPU_NEON},
    {"dotprod", {"asimddp"}, KRN_CPU_DOTPROD},
    {"i8mm", {"i8mm"}, KRN_CPU_I8MM},
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
    const char *said = getenv("PIPED_TEST_CPU"), *narrowed = getenv("PIPED_CPU");
    uint32_t want = 0, allowed = ~0u;
    char line[8192], error[KRN_CPU_TEXT_MAX];

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
    if (narrowed && *narrowed) {
        T_EQ(krn_cpu_parse(narrowed, &allowed, error), 0);
    }
    T_EQ(krn_cpu_features(), want & allowed);
    T_EQ(krn_cpu_check(error), 0);
}

TEST(primitives_want_nothing_that_is_not_a_feature)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);
    uint32_t all = 0;

    for (size_t i = 0; i < base_array_count(known); i++) {
        all |= known[i].feature;
    }
    for (size_t i = 0; i < count; i++) {
        T_EQ(v[i].needs & ~all, 0);
    }
}

#if defined(__x86_64__)
#define BASE_NAME "sse2"
#define LESSER_FEATURE 0
#define NAME "avx512vnni"
#define FEATURES (KRN_CPU_AVX2 | KRN_CPU_AVX512 | KRN_CPU_AVX512VNNI)
#define OTHER_NAME "avxvnni"
#define OTHER_FEATURE KRN_CPU_AVXVNNI
#elif defined(__aarch64__)
#define BASE_NAME "neon"
#define LESSER_FEATURE KRN_CPU_NEON
#define NAME "dotprod"
#define FEATURES (KRN_CPU_NEON | KRN_CPU_DOTPROD)
#define OTHER_NAME "i8mm"
#define OTHER_FEATURE KRN_CPU_I8MM
#endif

#ifdef NAME
TEST(a_name_allows_what_every_such_cpu_has)
{
    uint32_t features = ~0u;
    char text[KRN_CPU_TEXT_MAX];

    T_EQ(krn_cpu_parse(BASE_NAME, &features, text), 0);
    T_EQ(features, LESSER_FEATURE);
    T_STR(krn_cpu_names(features, text), BASE_NAME);
    T_EQ(krn_cpu_parse(NAME, &features, text), 0);
    T_EQ(features, FEATURES);
    T_EQ(krn_cpu_parse(NAME "," OTHER_NAME, &features, text), 0);
    T_EQ(features, FEATURES | OTHER_FEATURE);
    T_CONTAINS(krn_cpu_names(features, text), NAME);
    T_CONTAINS(text, OTHER_NAME);
    T_EQ(krn_cpu_parse(text, &features, text), 0);
    T_EQ(features, FEATURES | OTHER_FEATURE);
}

TEST(a_name_that_is_not_known_is_refused_with_those_that_are)
{
    static const char *const bad[] = {"",       ",",      "nonsense", NAME ",",
                                      "," NAME, NAME "x", NAME " ",   NAME ",nonsense"};
    char text[KRN_CPU_TEXT_MAX], longest[4096];
    uint32_t features = 1234;

    for (size_t i = 0; i < base_array_count(bad); i++) {
        text[0] = '\0';
        T_EQ(krn_cpu_parse(bad[i], &features, text), -EINVAL);
        T_CONTAINS(text, "PIPED_CPU");
        T_CONTAINS(text, BASE_NAME);
        for (size_t k = 0; k < base_array_count(known); k++) {
            T_CONTAINS(text, known[k].name);
        }
    }
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    T_EQ(krn_cpu_parse(longest, &features, text), -EINVAL);
    T_CONTAINS(text, known[base_array_count(known) - 1].name);
    T_EQ(features, 1234);
}

static const char *self;

/* Runs "SELF show" under PIPED_CPU=@names. Return: what it printed, or "". */
static const char *shown(const char *names)
{
    static char line[1024];
    const char *emulator = getenv("MESON_EXE_WRAPPER");
    char command[4400];
    FILE *f;

    snprintf(command, sizeof(command), "PIPED_CPU='%s' %s '%s' show", names,
             emulator ? emulator : "", self);
    f = popen(command, "r");
    if (!f || !fgets(line, sizeof(line), f)) {
        line[0] = '\0';
    }
    if (f) {
        pclose(f);
    }
    return line;
}

#define NO_SHELL (access("/bin/sh", X_OK) < 0) /* on an emulated machine of tests/avx512 */

TEST(the_environment_narrows_and_never_adds)
{
    char text[KRN_CPU_TEXT_MAX], want[1024];
    uint32_t own, allowed;

    if (NO_SHELL) {
        T_SKIP("there is no shell");
    }
    T_EQ(sscanf(shown(""), "%x", &own), 1);
    T_EQ(own & krn_cpu_features(), krn_cpu_features());
    for (size_t i = 0; i < base_array_count(known); i++) {
        T_EQ(krn_cpu_parse(known[i].name, &allowed, text), 0);
        snprintf(want, sizeof(want), "%x %d 0 %s\n", own & allowed, (own & ~allowed) != 0,
                 krn_cpu_names(own & allowed, text));
        T_STR(shown(known[i].name), want);
    }
}

TEST(of_a_bad_list_nothing_is_allowed)
{
    char want[64];

    if (NO_SHELL) {
        T_SKIP("there is no shell");
    }
    snprintf(want, sizeof(want), "%x ", LESSER_FEATURE);
    T_TRUE(strncmp(shown("nonsense," NAME), want, strlen(want)) == 0);
    T_CONTAINS(shown("nonsense," NAME), " -22 ");
    T_CONTAINS(shown("nonsense," NAME), "\"nonsense\"");
}
#endif

/* features, narrowed or not, what krn_cpu_check() says, names or message */
static int show(void)
{
    char text[KRN_CPU_TEXT_MAX];
    int error = krn_cpu_check(text);

    printf("%x %d %d %s\n", krn_cpu_features(), krn_cpu_narrowed(), error,
           error < 0 ? text : krn_cpu_names(krn_cpu_features(), text));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "show") == 0) {
        return show();
    }
#ifdef NAME
    self = argv[0];
#endif
    return t_main(argc, argv);
}
