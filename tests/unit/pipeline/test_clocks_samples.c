/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks that one thread reads while another one writes them. */
#include <pthread.h>

#include "pipeline/clocks.h"
#include "pipeline/stats.h"
#include "tests/harness.h"

#define FOLDS 300000u
static void *clock_writer(void *arg)
{
    struct pl_clocks *c = arg;

    for (uint64_t i = 0; i < FOLDS; i++) {
        /* all frames up to the n-th take n ns on average 128 ns */
        struct pl_clock_run f = {.start_ns = 0, .end_ns = 128, .cpu_ns = 64, .computed = 1};

        f.timed = true;
        for (size_t k = 0; k <= c->unit_count; k++) {
            c->laps[k] = k * 128 / c->unit_count;
        }
        pl_clocks_fold(c, &f);
    }
    return NULL;
}

/* Reads while another thread writes. @samples: reads. */
static void read_beside_writer(uint64_t *samples)
{
    struct pl_clocks c;
    struct pl_team_stats s = {0};
    pthread_t thread;
    uint64_t last = 0;

    T_EQ(pl_clocks_init(&c, 16), 0);
    T_EQ(pthread_create(&thread, NULL, clock_writer, &c), 0);
    do {
        struct pl_series unit;

        if (pl_clocks_read(&c, &s)) { /* else the writer lost its core in a fold */
            T_EQ(s.busy_ns, s.frames * 128);
            T_EQ(s.cpu_ns, s.frames * 64);
            T_EQ(s.service.count, s.frames);
            ++*samples;
        }
        T_TRUE(s.frames >= last);
        last = s.frames;
        if (pl_clocks_read_unit(&c, (size_t)t_range(0, 15), &unit)) {
            T_TRUE(unit.count >= last);
            T_TRUE(unit.count == 0 || unit.mean_ns == 8);
        }
    } while (last < FOLDS);
    pthread_join(thread, NULL);
    pl_clocks_deinit(&c);
}

TEST(clocks_samples_are_consistent)
{
    uint64_t samples;

    do { /* with one sample, the writer had ended before it */
        samples = 0;
        read_beside_writer(&samples);
    } while (samples == 1);
    T_LT(1, samples);
}
