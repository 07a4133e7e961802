/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/harness.h - checks that print both sides, cases that register themselves, one seed
 *
 *     TEST(ring_keeps_order) { T_EQ(pl_ring_count(&r), 3); }
 *     TEST_MAIN()
 *
 * A failed check prints and fails the case (the case returns); checks stay on in release builds.
 * Arguments: case name prefixes to run; "--list". PIPED_TEST_SEED=N replays random cases; the seed
 * is printed when a case fails. PIPED_TEST_SHARE=N runs one random case of N, where every
 * instruction is emulated.
 */
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct t_case {
    const char *name;
    void (*run)(void);
    struct t_case *next;
};
static struct t_case *t_cases, **t_tail = &t_cases;
static int t_failed, t_skipped;
static uint64_t t_seed, t_state;

/* splitmix64 */
static inline uint64_t t_random(void)
{
    uint64_t z = (t_state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
/* uniform in [lo, hi] */
static inline int64_t t_range(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(t_random() % (uint64_t)(hi - lo + 1));
}
/* N of PIPED_TEST_SHARE, at least 1 */
static inline int t_share(void)
{
    const char *share = getenv("PIPED_TEST_SHARE");
    int n = share ? atoi(share) : 1;

    return n > 1 ? n : 1;
}
/* how many of @count random cases are run */
static inline int t_times(int count)
{
    return (count + t_share() - 1) / t_share();
}
/* uniform in [-1, 1) */
static inline float t_float(void)
{
    return (float)((double)(t_random() >> 11) * (2.0 / 9007199254740992.0) - 1.0);
}

#define TEST(case_name)                                                                            \
    static void t_run_##case_name(void);                                                           \
    static struct t_case t_case_##case_name = {#case_name, t_run_##case_name, NULL};               \
    __attribute__((constructor)) static void t_register_##case_name(void)                          \
    {                                                                                              \
        *t_tail = &t_case_##case_name;                                                             \
        t_tail = &t_case_##case_name.next;                                                         \
    }                                                                                              \
    static void t_run_##case_name(void)

#define T_FAIL(...)                                                                                \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        t_failed = 1;                                                                              \
        return;                                                                                    \
    } while (0)
#define T_TRUE(x)                                                                                  \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            T_FAIL("expected true: %s", #x);                                                       \
        }                                                                                          \
    } while (0)
#define T_CMP(a, op, b)                                                                            \
    do {                                                                                           \
        long long t_a = (long long)(a), t_b = (long long)(b);                                      \
        if (!(t_a op t_b)) {                                                                       \
            T_FAIL("%s %s %s: %lld against %lld", #a, #op, #b, t_a, t_b);                          \
        }                                                                                          \
    } while (0)
#define T_EQ(a, b) T_CMP(a, ==, b)
#define T_NE(a, b) T_CMP(a, !=, b)
#define T_LT(a, b) T_CMP(a, <, b)
#define T_LE(a, b) T_CMP(a, <=, b)
#define T_STR(a, b)                                                                                \
    do {                                                                                           \
        const char *t_a = (a), *t_b = (b);                                                         \
        if (!t_a || !t_b || strcmp(t_a, t_b) != 0) {                                               \
            T_FAIL("%s: \"%s\" against \"%s\"", #a, t_a ? t_a : "(null)", t_b ? t_b : "(null)");   \
        }                                                                                          \
    } while (0)
#define T_CONTAINS(text, part)                                                                     \
    do {                                                                                           \
        const char *t_a = (text), *t_b = (part);                                                   \
        if (!t_a || !strstr(t_a, t_b)) {                                                           \
            T_FAIL("%s: \"%s\" does not contain \"%s\"", #text, t_a ? t_a : "(null)", t_b);        \
        }                                                                                          \
    } while (0)
#define T_NEAR(a, b, bound)                                                                        \
    do {                                                                                           \
        double t_a = (a), t_b = (b), t_c = (bound);                                                \
        if (!(fabs(t_a - t_b) <= t_c)) {                                                           \
            T_FAIL("%s near %s: %.9g against %.9g, bound %.3g", #a, #b, t_a, t_b, t_c);            \
        }                                                                                          \
    } while (0)
#define T_SKIP(reason)                                                                             \
    do {                                                                                           \
        fprintf(stderr, "skipped: %s\n", reason);                                                  \
        t_skipped = 1;                                                                             \
        return;                                                                                    \
    } while (0)

static int t_main(int argc, char **argv)
{
    const char *seed = getenv("PIPED_TEST_SEED");
    int passed = 0, failed = 0, skipped = 0;

    t_seed = seed ? strtoull(seed, NULL, 0) : 20260601;
    for (struct t_case *c = t_cases; c; c = c->next) {
        int wanted = argc < 2;

        for (int i = 1; i < argc; i++) {
            wanted |= strncmp(c->name, argv[i], strlen(argv[i])) == 0;
        }
        if (argc == 2 && strcmp(argv[1], "--list") == 0) {
            puts(c->name);
            continue;
        }
        if (!wanted) {
            continue;
        }
        t_failed = t_skipped = 0;
        t_state = t_seed;
        c->run();
        if (t_failed) {
            failed++;
            printf("FAIL %s (seed %llu)\n", c->name, (unsigned long long)t_seed);
        } else if (t_skipped) {
            skipped++;
            printf("SKIP %s\n", c->name);
        } else {
            passed++;
            printf("ok %s\n", c->name);
        }
    }
    printf("cases: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : passed == 0 && skipped > 0 ? 77 : 0;
}
#define TEST_MAIN()                                                                                \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return t_main(argc, argv);                                                                 \
    }
