/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/base.h"
#include "pipeline/members.h"
#include "tests/harness.h"

#define TRIES 1000

struct sleeper {
    struct pl_worker_time time;
    _Atomic bool ready;
    int pipe[2];
    ssize_t got;
};

static void *sleep_on(void *arg)
{
    struct sleeper *s = arg;
    char byte;

    pl_worker_time_init(&s->time);
    atomic_store(&s->ready, true);
    s->got = read(s->pipe[0], &byte, 1);
    return NULL;
}

/* It sleeps while others compute, and misses nothing: it waits for its leader, not for a core. */
TEST(a_sleeping_thread_loses_nothing)
{
    struct sleeper s = {.ready = false};
    uint64_t lost = 1;
    pthread_t thread;

    T_EQ(pipe(s.pipe), 0);
    T_EQ(pthread_create(&thread, NULL, sleep_on, &s), 0);
    while (!atomic_load(&s.ready)) {
    }
    for (int i = 0; i < TRIES && lost > 0; i++) { /* until it sleeps */
        uint64_t start = base_now_ns();

        pl_worker_time_look(&s.time);
        while (base_now_ns() - start < BASE_NS_PER_MS) {
        }
        lost = pl_worker_time_lost_ns(&s.time, base_now_ns() - start);
    }
    T_EQ(lost, 0);
    T_EQ(write(s.pipe[1], "", 1), 1);
    pthread_join(thread, NULL);
    T_EQ(s.got, 1);
    pl_worker_time_deinit(&s.time);
    close(s.pipe[0]);
    close(s.pipe[1]);
}

/* More than it did not run for cannot be lost, whatever the kernel has entered meanwhile. */
TEST(what_ran_was_not_lost)
{
    struct pl_worker_time w;
    uint64_t start = base_now_ns(), ns;

    pl_worker_time_init(&w);
    pl_worker_time_look(&w);
    w.waited_ns -= BASE_NS_PER_S; /* as if a wait of a second had ended */
    while ((ns = base_now_ns() - start) < 2 * BASE_NS_PER_MS) {
    }
    T_LE(pl_worker_time_lost_ns(&w, ns), ns);
    T_EQ(pl_worker_time_lost_ns(&w, 0), 0);
    pl_worker_time_deinit(&w);
    pl_worker_time_deinit(&w);
}

TEST(nothing_is_known_without_the_kernels_figures)
{
    struct pl_worker_time w;

    pl_worker_time_init(&w);
    pl_worker_time_deinit(&w);
    pl_worker_time_look(&w);
    T_EQ(pl_worker_time_lost_ns(&w, BASE_NS_PER_S), 0);
    w.fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* an empty file */
    pl_worker_time_look(&w);
    T_EQ(pl_worker_time_lost_ns(&w, BASE_NS_PER_S), 0);
    pl_worker_time_deinit(&w);
}

TEST_MAIN()
