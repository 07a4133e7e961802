/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/harness.h - checks that print both sides, self-registering cases, one seed
 *
 *     TEST(ring_keeps_order) { T_EQ(pl_ring_count(&r), 3); }
 *     TEST_MAIN()
 *
 * The cases of a program may be in several files, one of which has TEST_MAIN(). TEST_LAST() is for
 * a case that runs after those of all files.
 *
 * A failed check prints both sides and ends the case, which fails: in a case it returns, so that
 * cleanup attributes do their work; in a function that the case calls it jumps to the runner, over
 * whatever is in between. Only threads that a case starts go on, from the function that checked.
 * Checks stay on in release builds.
 *
 * Arguments: prefixes of the cases to run; "--list". A program that runs no case fails.
 * PIPED_TEST_SEED=N replays random cases; a failing case prints the seed.
 * PIPED_TEST_SHARE=N runs one random case in N: for emulated CPUs, under sanitizers, and when cases
 * run again for a lesser CPU.
 */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct t_case {
    const char *name;
    void (*run)(void);
    struct t_case *next;
};
/* One of each in a program, although each of its files has them. */
__attribute__((weak)) struct t_case *t_cases, **t_tail = &t_cases;
__attribute__((weak)) int t_failed, t_skipped;
__attribute__((weak)) uint64_t t_seed, t_state;
__attribute__((weak)) char t_noted[160];
/* Where checks of the thread that runs the case end it. */
__attribute__((weak)) jmp_buf t_runner;
__attribute__((weak)) _Thread_local bool t_runs_case;

static inline uint64_t t_random(void)
{
    return base_splitmix64(&t_state);
}
/* uniform in [lo, hi] */
static inline int64_t t_range(int64_t lo, int64_t hi)
{
    return lo + (int64_t)(t_random() % (uint64_t)(hi - lo + 1));
}
/* PIPED_TEST_SHARE, at least 1 */
static inline int t_share(void)
{
    const char *share = getenv("PIPED_TEST_SHARE");
    int n = share ? atoi(share) : 1;

    return n > 1 ? n : 1;
}
/* how many of @count random cases to run */
static inline int t_times(int count)
{
    return (count + t_share() - 1) / t_share();
}
/* uniform in [-1, 1) */
static inline float t_float(void)
{
    return (float)((double)(t_random() >> 11) * (2.0 / 9007199254740992.0) - 1.0);
}

/* What a failed check says too, until the next note or the end of the case: which round it was. */
__attribute__((format(printf, 1, 2))) static inline void t_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(t_noted, sizeof(t_noted), format, args);
    va_end(args);
}
/* @function: which checked; the name of a case's begins so */
static inline void t_end(const char *function)
{
    if (t_runs_case && strncmp(function, "t_run_", 6) != 0) {
        longjmp(t_runner, 1);
    }
}

#define T_CASE(case_name, when)                                                                    \
    static void t_run_##case_name(void);                                                           \
    static struct t_case t_case_##case_name = {#case_name, t_run_##case_name, NULL};               \
    __attribute__((when)) static void t_register_##case_name(void)                                 \
    {                                                                                              \
        *t_tail = &t_case_##case_name;                                                             \
        t_tail = &t_case_##case_name.next;                                                         \
    }                                                                                              \
    static void t_run_##case_name(void)
/* constructors with a priority run before those without, whatever the order of files */
#define TEST(case_name) T_CASE(case_name, constructor(1000))
#define TEST_LAST(case_name) T_CASE(case_name, constructor)

#define T_FAIL(...)                                                                                \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fprintf(stderr, "%s%s\n", t_noted[0] ? "; " : "", t_noted);                                \
        t_failed = 1;                                                                              \
        t_end(__func__);                                                                           \
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
        t_end(__func__);                                                                           \
        return;                                                                                    \
    } while (0)

static inline void t_run(const struct t_case *c)
{
    t_failed = t_skipped = 0;
    t_state = t_seed;
    t_noted[0] = '\0';
    if (setjmp(t_runner) == 0) {
        t_runs_case = true;
        c->run();
    }
    t_runs_case = false;
}

static inline int t_main(int argc, char **argv)
{
    const char *seed = getenv("PIPED_TEST_SEED");
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;
    int passed = 0, failed = 0, skipped = 0;

    t_seed = seed ? strtoull(seed, NULL, 0) : 20260601;
    for (struct t_case *c = t_cases; c; c = c->next) {
        int wanted = argc < 2;

        if (list) {
            puts(c->name);
            continue;
        }
        for (int i = 1; i < argc; i++) {
            wanted |= strncmp(c->name, argv[i], strlen(argv[i])) == 0;
        }
        if (!wanted) {
            continue;
        }
        t_run(c);
        if (t_failed) {
            failed++;
            printf("FAIL %s (seed %llu)\n", c->name, (unsigned long long)t_seed);
            fflush(stdout); /* what it left behind may stop the next one */
        } else if (t_skipped) {
            skipped++;
            printf("SKIP %s\n", c->name);
        } else {
            passed++;
            printf("ok %s\n", c->name);
        }
    }
    if (list) {
        return 0;
    }
    if (passed + failed + skipped == 0) {
        printf("FAIL no case ran\n");
        failed = 1;
    }
    printf("cases: %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : passed == 0 && skipped > 0 ? 77 : 0;
}
#define TEST_MAIN()                                                                                \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return t_main(argc, argv);                                                                 \
    }
