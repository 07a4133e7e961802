/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/base.h"
#include "pipeline/members.h"
#include "pipeline/plan.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/scarce_threads.h"

struct seen {
    _Atomic uint32_t count;
    int cpu[PL_CPU_MAX];
    int allowed[PL_CPU_MAX];
    pthread_t thread[PL_CPU_MAX];
};

static void look(void *arg, size_t i)
{
    struct seen *s = arg;
    cpu_set_t set;

    atomic_fetch_add(&s->count, 1);
    s->cpu[i] = sched_getcpu();
    s->thread[i] = pthread_self();
    s->allowed[i] =
        pthread_getaffinity_np(pthread_self(), sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
}

static size_t own_cpus(uint16_t cpus[PL_CPU_MAX])
{
    cpu_set_t set;
    size_t n = 0;

    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && n < PL_CPU_MAX; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            cpus[n++] = (uint16_t)cpu;
        }
    }
    return n;
}

struct members_case {
    const uint16_t *cpus;
    size_t width;
    struct seen seen;
    int result;
    bool pinned;
};

static void *members_leader(void *arg)
{
    struct members_case *c = arg;
    struct pl_members m = PL_MEMBERS_NULL;

    c->result = pl_members_init(&m, c->cpus, c->width, "piped:test");
    if (c->result == 0) {
        c->pinned = m.pinned;
        pl_members_each(&m, look, &c->seen);
        pl_members_rest(&m);
        pl_members_each(&m, look, &c->seen); /* wakes them again */
    }
    pl_members_deinit(&m);
    return NULL;
}

static void run_members(struct members_case *c)
{
    pthread_t thread;

    if (pl_thread_start(&thread, members_leader, c) == 0) {
        pthread_join(thread, NULL);
    }
}

TEST(members_sit_one_to_a_core)
{
    uint16_t cpus[PL_CPU_MAX];
    size_t n = own_cpus(cpus);

    for (size_t width = 1; width <= n && width <= 8; width++) {
        struct members_case c = {.cpus = cpus, .width = width};

        run_members(&c);
        T_EQ(c.result, 0);
        T_TRUE(c.pinned);
        T_EQ(atomic_load(&c.seen.count), 2 * width);
        for (size_t i = 0; i < width; i++) {
            bool found = false;

            T_EQ(c.seen.allowed[i], 1);
            for (size_t k = 0; k < width; k++) {
                found |= c.seen.cpu[k] == cpus[i];
                T_TRUE(k == i || !pthread_equal(c.seen.thread[i], c.seen.thread[k]));
            }
            T_TRUE(found);
        }
    }
}

TEST(members_that_cannot_be_pinned_run_unpinned)
{
    uint16_t own[PL_CPU_MAX], cpus[3] = {1023, 1022, 1021};
    size_t n = own_cpus(own);
    struct members_case c = {.cpus = cpus, .width = 3};

    run_members(&c);
    T_EQ(c.result, 0);
    T_TRUE(!c.pinned);
    for (size_t i = 0; i < 3; i++) {
        T_EQ(c.seen.allowed[i], n);
    }
    c = (struct members_case){.cpus = NULL, .width = 3};
    run_members(&c);
    T_EQ(c.result, 0);
    T_TRUE(!c.pinned);
    T_EQ(atomic_load(&c.seen.count), 6);
}

static bool kernel_counts_waits(void)
{
    FILE *f = fopen("/proc/thread-self/schedstat", "re");
    unsigned long long ran = 0;
    bool counts = f && fscanf(f, "%llu", &ran) == 1 && ran > 0;

    if (f) {
        fclose(f);
    }
    return counts;
}

struct kept {
    struct pl_members *members;
    pthread_t leader;
    uint16_t cpu; /* of the worker */
    _Atomic bool over;
    struct pl_members_lost lost;
};

/* Another program on the worker's core. */
static void *compete(void *arg)
{
    struct kept *k = arg;
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(k->cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
    while (!atomic_load(&k->over)) {
    }
    return NULL;
}

/* The worker computes until the leader sees that it has lost its core for a while. */
static void watch_worker(void *arg, size_t i)
{
    struct kept *k = arg;

    if (!pthread_equal(pthread_self(), k->leader)) {
        while (!atomic_load(&k->over)) {
        }
        return;
    }
    do {
        k->lost = pl_members_lost(k->members);
    } while (k->lost.most_ns < BASE_NS_PER_MS);
    atomic_store(&k->over, true);
}

static void watch_as_leader(const uint16_t *cpus)
{
    struct pl_members m = PL_MEMBERS_NULL;
    struct kept k = {.members = &m, .leader = pthread_self(), .cpu = cpus[1]};
    pthread_t rival;

    T_EQ(pl_members_init(&m, cpus, 2, "piped:test"), 0);
    T_EQ(pthread_create(&rival, NULL, compete, &k), 0);
    pl_members_look(&m);
    pl_members_each(&m, watch_worker, &k);
    T_EQ(k.lost.sum_ns, k.lost.most_ns); /* the leader is no worker */
    T_LE(k.lost.sum_ns, base_now_ns() - m.looked_ns);
    pthread_join(rival, NULL);
    pl_members_deinit(&m);
}

static void *watching_leader(void *arg)
{
    watch_as_leader(arg);
    return NULL;
}

TEST(what_takes_a_worker_from_its_core_is_seen)
{
    uint16_t cpus[PL_CPU_MAX];
    pthread_t thread;

    if (own_cpus(cpus) < 2) {
        T_SKIP("one CPU");
    }
    if (!kernel_counts_waits()) {
        T_SKIP("this kernel keeps no schedstat");
    }
    T_EQ(pl_thread_start(&thread, watching_leader, cpus), 0);
    pthread_join(thread, NULL);
}

TEST(members_without_threads_fail_and_do_not_hang)
{
    for (int left = 1; left <= 3; left++) { /* the leader itself takes one */
        struct members_case c = {.cpus = NULL, .width = 4, .result = 1};

        scarce_threads(left);
        run_members(&c);
        enough_threads();
        T_EQ(c.result, -EAGAIN);
    }
}

TEST_MAIN()
