/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>

#include "pipeline/trace.h"
#include "tests/harness.h"

#define BYTES PL_TRACE_RING_BYTES_MIN
#define WORDS (BYTES / 4u)

static bool put(struct pl_trace_ring *r, uint32_t words, uint32_t value)
{
    if (!pl_trace_begin(r, TRACE_TEAM, words)) {
        return false;
    }
    for (uint32_t i = 1; i < words; i++) {
        pl_trace_put(r, value + i);
    }
    pl_trace_end(r);
    return true;
}

/* Return: words of the record at @at; 0: it is not the one that was put. */
static uint32_t check(const uint32_t *at, uint32_t value)
{
    uint32_t words = trace_words_of(*at);

    for (uint32_t i = 1; i < words; i++) {
        if (at[i] != value + i) {
            return 0;
        }
    }
    return trace_kind_of(*at) == TRACE_TEAM ? words : 0;
}

TEST(sizes_are_checked)
{
    struct pl_trace_ring r = {0};

    T_EQ(pl_trace_ring_init(&r, 0), -EINVAL);
    T_EQ(pl_trace_ring_init(&r, BYTES / 2), -EINVAL);
    T_EQ(pl_trace_ring_init(&r, BYTES + 4), -EINVAL);
    T_EQ(pl_trace_ring_init(&r, 2u * PL_TRACE_RING_BYTES_MAX), -EINVAL);
    T_EQ(pl_trace_ring_init(&r, BYTES), 0);
    pl_trace_ring_deinit(&r);
    pl_trace_ring_deinit(&r);
}

TEST(a_full_ring_loses_whole_records_and_counts_them)
{
    struct pl_trace_ring r = {0};
    uint32_t to[WORDS], kept = 0, at = 0;

    T_EQ(pl_trace_ring_init(&r, BYTES), 0);
    T_TRUE(!put(&r, WORDS + 1, 0)); /* never fits */
    T_EQ(pl_trace_lost(&r), 1);
    while (put(&r, 30, 100 * kept)) {
        kept++;
    }
    T_EQ(kept, WORDS / 30);
    T_EQ(pl_trace_lost(&r), 2);
    T_TRUE(put(&r, WORDS - 30 * kept, 100 * kept)); /* a shorter one still fits, to the last word */
    T_EQ(pl_trace_waiting(&r), WORDS);
    T_TRUE(!put(&r, 1, 0));
    T_EQ(pl_trace_lost(&r), 3);
    T_EQ(pl_trace_read(&r, to, 29), 0); /* no half records */
    T_EQ(pl_trace_read(&r, to, 61), 60);
    T_EQ(check(to, 0), 30);
    T_EQ(check(to + 30, 100), 30);
    T_EQ(pl_trace_read(&r, to, WORDS), WORDS - 60);
    for (uint32_t i = 2; i < kept; i++) {
        at += check(to + at, 100 * i);
    }
    T_EQ(check(to + at, 100 * kept), WORDS - 30 * kept);
    T_EQ(pl_trace_read(&r, to, WORDS), 0);
    pl_trace_ring_deinit(&r);
}

#define RECORDS 400000u

static void *writer(void *arg)
{
    struct pl_trace_ring *r = arg;

    for (uint32_t i = 0; i < RECORDS; i++) {
        while (!put(r, 2 + i % 61, i)) {
            sched_yield();
        }
    }
    return NULL;
}

/* The indices wrap after the first few records. */
TEST(two_threads)
{
    struct pl_trace_ring r = {0};
    uint32_t to[WORDS], next = 0;
    pthread_t thread;

    T_EQ(pl_trace_ring_init(&r, BYTES), 0);
    T_EQ(pthread_create(&thread, NULL, writer, &r), 0);
    while (next < RECORDS) {
        size_t got = pl_trace_read(&r, to, WORDS);

        for (size_t at = 0; at < got; next++) {
            if (trace_words_of(to[at]) != 2 + next % 61 || to[at + 1] != next + 1 ||
                to[at + trace_words_of(to[at]) - 1] != next + trace_words_of(to[at]) - 1) {
                T_EQ(to[at + 1], next + 1);
                exit(1);
            }
            at += trace_words_of(to[at]);
        }
        if (got == 0) {
            sched_yield();
        }
    }
    pthread_join(thread, NULL);
    T_EQ(pl_trace_waiting(&r), 0);
    pl_trace_ring_deinit(&r);
}

TEST_MAIN()
