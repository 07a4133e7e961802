/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's lock-free code, as it is, under every schedule that is small enough, and under
 * many random ones, with what C11's memory model lets a load read. */
#include <stdatomic.h>

#include "tests/harness.h"
#include "tests/interleavings/explore.h"
#include "tests/interleavings/scenarios.h"
#include "tests/unit/pipeline/tiny_net.h"

/* PIPED_TEST_INTERLEAVINGS=N: N times as many random schedules */
static uint64_t runs(uint64_t count)
{
    const char *factor = getenv("PIPED_TEST_INTERLEAVINGS");

    return count * (factor ? strtoull(factor, NULL, 10) : 1);
}

static bool all(void (*fn)(void *), void *arg, unsigned bound, struct ex_report *ret)
{
    bool good = ex_explore(
        fn, arg,
        &(struct ex_options){.runs = 2000000, .all = true, .preemptions = bound, .odd = bound},
        ret);

    fprintf(stderr, "%llu schedules%s%s\n", (unsigned long long)ret->runs, good ? "" : ": ",
            ret->text);
    return good;
}

static bool random_runs(void (*fn)(void *), void *arg, uint64_t count)
{
    struct ex_report report;
    bool good =
        ex_explore(fn, arg, &(struct ex_options){.runs = runs(count), .seed = t_random()}, &report);

    fprintf(stderr, "%llu schedules%s%s\n", (unsigned long long)report.runs, good ? "" : ": ",
            report.text);
    return good;
}

#define ALL_GOOD(fn, arg, bound)                                                                   \
    do {                                                                                           \
        struct ex_report report;                                                                   \
        T_TRUE(all(fn, arg, bound, &report));                                                      \
        T_TRUE(report.complete);                                                                   \
    } while (0)

#define FAILS(fn, arg, why)                                                                        \
    do {                                                                                           \
        struct ex_report report;                                                                   \
        T_TRUE(!all(fn, arg, 3, &report));                                                         \
        T_TRUE(strstr(report.text, why) != NULL);                                                  \
    } while (0)

TEST(the_checker_knows_the_memory_model)
{
    int relaxed = memory_order_relaxed, release = memory_order_release,
        strongest = memory_order_seq_cst;

    FAILS(litmus_message_passing, &relaxed, "race");
    ALL_GOOD(litmus_message_passing, &release, 3);
    FAILS(litmus_store_buffering, &release, "neither");
    ALL_GOOD(litmus_store_buffering, &strongest, 3);
    ALL_GOOD(litmus_three_threads, NULL, 3);
    FAILS(litmus_race, NULL, "race");
    FAILS(litmus_lost_wakeup, NULL, "wait for each other");
}

TEST(rings_under_all_schedules)
{
    size_t items = 3;

    ALL_GOOD(ring_of_two, &items, 1);
}

TEST(sleepers_under_all_schedules)
{
    size_t items = 1;

    ALL_GOOD(ring_with_wake, &items, 2);
    ALL_GOOD(two_rings_with_wake, &items, 1);
}

TEST(rings_and_sleepers_under_random_schedules)
{
    size_t items = 6;

    T_TRUE(random_runs(ring_of_two, &items, 3000));
    T_TRUE(random_runs(ring_with_wake, &items, 3000));
    T_TRUE(random_runs(two_rings_with_wake, &items, 3000));
}

TEST(seats_under_random_schedules)
{
    struct seats_case cases[] = {{.classes = {1, 1, 1}, .rounds = 2},
                                 {.classes = {1, 1, 0}, .rounds = 3},
                                 {.classes = {0, 2, 1}, .rounds = 3},
                                 {.classes = {0, 1, 2}, .rounds = 3, .cancels = true},
                                 {.classes = {0, 1, 0}, .rounds = 3, .changes = true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        T_TRUE(random_runs(seats_taken, &cases[i], 1000));
    }
}

TEST(seats_under_all_schedules)
{
    struct seats_case c = {.classes = {0, 1, 2}, .rounds = 1, .cancels = true};

    ALL_GOOD(seats_taken, &c, 1);
}

TEST(pipelines_under_random_schedules)
{
    static const char *const plans[][2] = {
        {"0-4@big", NULL},
        {"0-1@big|2-4@little", NULL},
        {"0-4@big+little", NULL},
        {"0-1@big*2|2-4@little", "0-2@little|3-4@big*2"},
        {"0-0@big|1-2@little|3-4@big", "0-4@big"},
        {"0-4@big/3", NULL},
        {"0-1@big*2/2|2-4@little/3", "0-2@little/2|3-4@big*2"},
        {"0-1@big*2|2-3@big*2|4-4@big", "0-3@big*3|4-4@little*2"}, /* more teams than cores */
        {"0-1@big*2|2-4@big*2", NULL},
        {"70%:0-4@big;30%:0-2@big|3-4@little", "0-4@little;0-1@big*2|2-4@big"},
    };
    struct tiny_net net;

    tiny_net_init(&net, 5, 3, 4);
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        for (unsigned spin = 0; spin < 2; spin++) {
            struct pipeline_case c = {.plans = {plans[i][0], plans[i][1]},
                                      .frames = 6,
                                      .pool = 4,
                                      .spin_ns = spin * 20000,
                                      .seats = spin == 1 || i == 7 || i == 8,
                                      .cut = i == 8,
                                      .net = &net};

            T_TRUE(random_runs(pipeline_run, &c, 100));
        }
    }
    tiny_net_deinit(&net);
}

TEST_MAIN()
