/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>

#include "base.h"
#include "pipeline/clocks.h"
#include "pipeline/deal.h"
#include "pipeline/members.h"
#include "pipeline/ring.h"
#include "pipeline/sequencer.h"
#include "pipeline/stats.h"
#include "pipeline/wake.h"
#include "tests/harness.h"

/* ---- ring ---- */

TEST(ring_full_and_empty)
{
    struct pl_ring r = {0};
    int items[4];

    T_EQ(pl_ring_init(&r, 0), -EINVAL);
    T_EQ(pl_ring_init(&r, 3), 0); /* rounded up to 4 */
    T_TRUE(pl_ring_pop(&r) == NULL);
    for (size_t round = 0; round < 10; round++) { /* the indices wrap in the second */
        for (size_t i = 0; i < 4; i++) {
            T_EQ(pl_ring_count(&r), i);
            T_TRUE(pl_ring_push(&r, &items[i]));
        }
        T_TRUE(!pl_ring_push(&r, &items[0]));
        T_TRUE(pl_ring_peek(&r) == &items[0]);
        for (size_t i = 0; i < 4; i++) {
            T_TRUE(pl_ring_pop(&r) == &items[i]);
        }
        T_TRUE(pl_ring_pop(&r) == NULL);
    }
    T_LT(atomic_load(&r.tail), 1000); /* it did wrap */
    T_TRUE(!pl_ring_dry(&r));
    T_TRUE(pl_ring_push(&r, &items[0]));
    pl_ring_close(&r);
    T_TRUE(!pl_ring_dry(&r));
    pl_ring_pop(&r);
    T_TRUE(pl_ring_dry(&r));
    pl_ring_deinit(&r);
    pl_ring_deinit(&r);
}

#define RING_ITEMS 3000000u
struct ring_pair {
    struct pl_ring ring;
    uint64_t values[64]; /* plain memory: only the ring orders it */
};

static void *ring_producer(void *arg)
{
    struct ring_pair *p = arg;

    for (uint64_t i = 0; i < RING_ITEMS; i++) {
        uint64_t *slot = &p->values[i % base_array_count(p->values)];

        *slot = i; /* free again: the ring holds at most 32 */
        while (!pl_ring_push(&p->ring, slot)) {
            sched_yield();
        }
    }
    pl_ring_close(&p->ring);
    return NULL;
}

TEST(ring_two_threads)
{
    struct ring_pair p = {0};
    pthread_t thread;
    uint64_t next = 0, wrong = 0;

    T_EQ(pl_ring_init(&p.ring, 32), 0);
    T_EQ(pthread_create(&thread, NULL, ring_producer, &p), 0);
    while (!pl_ring_dry(&p.ring)) {
        uint64_t *item = pl_ring_peek(&p.ring);

        if (item == NULL) {
            sched_yield();
            continue;
        }
        wrong += *item != next++;
        pl_ring_pop(&p.ring);
    }
    pthread_join(thread, NULL);
    T_EQ(next, RING_ITEMS);
    T_EQ(wrong, 0);
    pl_ring_deinit(&p.ring);
}

/* ---- wake ---- */

#define WAKE_ROUNDS 100000u
struct wake_pair {
    struct pl_wake here, there;
    struct pl_ring to, fro;
};

static uint64_t *wake_receive(struct pl_ring *ring, struct pl_wake *wake)
{
    uint64_t *item;

    while ((item = pl_ring_pop(ring)) == NULL) {
        pl_wake_prepare(wake);
        if (pl_ring_peek(ring) != NULL) {
            pl_wake_cancel(wake);
            continue;
        }
        pl_wake_wait(wake);
    }
    return item;
}

static void *wake_echo(void *arg)
{
    struct wake_pair *p = arg;

    for (uint64_t i = 0; i < WAKE_ROUNDS; i++) {
        uint64_t *item = wake_receive(&p->to, &p->there);

        ++*item;
        pl_ring_push(&p->fro, item);
        pl_wake_signal(&p->here);
    }
    return NULL;
}

/* Every message is answered before the next: one lost wake-up and this never ends. */
TEST(wake_loses_nothing)
{
    struct wake_pair p = {0};
    uint64_t value = 0;
    pthread_t thread;

    T_EQ(pl_ring_init(&p.to, 1), 0);
    T_EQ(pl_ring_init(&p.fro, 1), 0);
    T_EQ(pthread_create(&thread, NULL, wake_echo, &p), 0);
    for (uint64_t i = 0; i < WAKE_ROUNDS; i++) {
        pl_ring_push(&p.to, &value);
        pl_wake_signal(&p.there);
        T_TRUE(wake_receive(&p.fro, &p.here) == &value);
        T_EQ(value, i + 1);
    }
    pthread_join(thread, NULL);
    pl_ring_deinit(&p.to);
    pl_ring_deinit(&p.fro);
}

/* ---- sequencer ---- */

TEST(sequencer_random_orders)
{
    for (int round = 0; round < 300; round++) {
        size_t window = (size_t)t_range(1, 40);
        struct pl_sequencer s;
        uint64_t in_flight[64], admitted = 0, got = 0, total = 2000;
        size_t flying = 0, finished = 0;

        T_EQ(pl_sequencer_init(&s, window), 0);
        while (got < total) {
            if (admitted < total && admitted - got < window && t_range(0, 2) > 0) {
                in_flight[flying++] = admitted++;
            } else if (flying > 0) {
                size_t pick = (size_t)t_range(0, (int64_t)flying - 1);
                uint64_t seq = in_flight[pick];

                in_flight[pick] = in_flight[--flying];
                /* the number itself, off by one so that it is not NULL, stands for the frame */
                pl_sequencer_put(&s, seq, (struct pl_frame *)(uintptr_t)(seq + 1));
                finished++;
            }
            for (struct pl_frame *f; (f = pl_sequencer_take(&s)) != NULL;) {
                T_EQ((uintptr_t)f, got + 1);
                got++;
            }
            T_LE(got, finished);
            /* nothing finished is held back: either all are out or the next one still flies */
            if (got < finished) {
                bool waits = false;

                for (size_t i = 0; i < flying; i++) {
                    waits |= in_flight[i] == got;
                }
                T_TRUE(waits);
            }
        }
        T_EQ(finished, total);
        pl_sequencer_deinit(&s);
    }
}

/* ---- deal ---- */

TEST(deal_follows_the_formula)
{
    for (int round = 0; round < 50000; round++) {
        struct pl_deal_view v[8];
        size_t n = (size_t)t_range(1, 8), best;
        double finish[8];

        for (size_t i = 0; i < n; i++) {
            v[i] = (struct pl_deal_view){
                .pending = (uint32_t)t_range(0, 6),
                .service_ns = (double)t_range(1, 50),
                .rate = 1,
                .held_ns = (double)t_range(0, 100),
            };
            finish[i] = (v[i].pending + 1.0) * base_max(v[i].service_ns, v[i].held_ns);
        }
        best = pl_deal_pick(v, n);
        for (size_t i = 0; i < n; i++) {
            T_TRUE(finish[best] <= finish[i]);
            if (finish[i] == finish[best]) {
                T_LE(v[best].pending, v[i].pending);
            }
        }
    }
}

TEST(deal_before_anything_was_measured)
{
    struct pl_deal_view v[] = {{0, 0, 4, 0}, {0, 0, 1, 0}};
    size_t given[2] = {0};

    /* frames that come at once: four to the fast one for each to the slow one */
    for (int i = 0; i < 50; i++) {
        size_t to = pl_deal_pick(v, 2);

        v[to].pending++;
        given[to]++;
    }
    T_EQ(given[0], 40);
    T_EQ(given[1], 10);
    /* one measured: the other is judged by it and by the prior */
    v[0] = (struct pl_deal_view){1, 100, 4, 0};
    v[1] = (struct pl_deal_view){0, 0, 1, 0};
    T_EQ(pl_deal_pick(v, 2), 0); /* 200 against 400 */
    v[0].pending = 4;
    T_EQ(pl_deal_pick(v, 2), 1); /* 500 against 400 */
    /* the measure beats the prior */
    v[1].service_ns = 600;
    T_EQ(pl_deal_pick(v, 2), 0);
    /* a team that got stuck in a frame is left alone */
    v[0].held_ns = 100000;
    T_EQ(pl_deal_pick(v, 2), 1);
}

TEST(deal_shares)
{
    struct pl_deal_view equal[] = {{0, 100, 1, 0}, {0, 102, 1, 0}, {0, 98, 1, 0}};
    struct pl_deal_view mixed[] = {{0, 0, 4, 0}, {0, 0, 4, 0}, {0, 0, 1, 0}};
    struct pl_deal_view apart[] = {{0, 1, 1, 0}, {0, 1e9, 1, 0}};

    T_EQ(pl_deal_shares(equal, 3), 3);
    T_EQ(pl_deal_shares(mixed, 3), 9);
    T_EQ(pl_deal_shares(apart, 2), 17);
}

/* ---- series and clocks ---- */

TEST(series_windows_and_merging)
{
    for (int round = 0; round < 200; round++) {
        struct pl_clocks c;
        struct pl_team_stats before = {0}, now = {0};
        struct pl_series window, sum;
        double x[400], mean = 0, m2 = 0;
        size_t n = (size_t)t_range(2, 400), split = (size_t)t_range(0, (int64_t)n);

        T_EQ(pl_clocks_init(&c, 3), 0);
        for (size_t i = 0; i < n; i++) {
            struct pl_clock_frame f = {.start_ns = 1000, .computed = true};

            f.end_ns = 1000 + (uint64_t)t_range(1000, 2000);
            x[i] = (double)(f.end_ns - 1000);
            if (i == split) {
                pl_clocks_read(&c, &before);
            }
            pl_clocks_fold(&c, &f);
        }
        pl_clocks_read(&c, &now);
        if (split == n) {
            before = now;
        }
        for (size_t i = split; i < n; i++) {
            mean += x[i] / (double)(n - split);
        }
        for (size_t i = split; i < n; i++) {
            m2 += (x[i] - mean) * (x[i] - mean);
        }
        pl_series_since(&before.service, &now.service, &window);
        T_EQ(window.count, n - split);
        if (n > split) {
            T_NEAR(window.mean_ns, mean, 1e-6 * mean);
            T_NEAR(window.m2, m2, 1e-6 * now.service.m2 + 1e-3);
        }
        /* before + window = all */
        sum = before.service;
        pl_series_merge(&sum, &window);
        T_EQ(sum.count, n);
        T_NEAR(sum.mean_ns, now.service.mean_ns, 1e-6 * mean + 1e-6);
        T_NEAR(sum.m2, now.service.m2, 1e-6 * now.service.m2 + 1e-3);
        pl_clocks_deinit(&c);
    }
}

TEST(clocks_split_a_frame_into_units)
{
    struct pl_clocks c;
    struct pl_series unit;

    T_EQ(pl_clocks_init(&c, 3), 0);
    for (int i = 0; i < 10; i++) {
        struct pl_clock_frame f = {.start_ns = 500, .end_ns = 1500, .computed = true};

        /* 400 ticks make 1000 ns */
        f.timed = true;
        c.laps[0] = 7000;
        c.laps[1] = 7100;
        c.laps[2] = 7100;
        c.laps[3] = 7400;
        pl_clocks_fold(&c, &f);
    }
    for (size_t i = 0; i < 3; i++) {
        static const double want[] = {250, 0, 750};

        pl_clocks_read_unit(&c, i, &unit);
        T_EQ(unit.count, 10);
        T_NEAR(unit.mean_ns, want[i], 1e-9);
        T_NEAR(unit.ewma_ns, want[i], 1e-9);
        T_NEAR(unit.min_ns, want[i], 1e-9);
        T_NEAR(unit.m2, 0, 1e-9);
    }
    pl_clocks_deinit(&c);
}

/* One frame of 1 ms in two even units but for @pause_ns inside the second. */
static void fold_paused(struct pl_clocks *c, uint64_t pause_ns)
{
    struct pl_clock_frame f = {.end_ns = BASE_NS_PER_MS + pause_ns, .computed = true};

    f.timed = true;
    c->laps[1] = BASE_NS_PER_MS / 2;
    c->laps[2] = f.end_ns;
    pl_clocks_fold(c, &f);
}

TEST(a_lost_core_is_no_slow_unit)
{
    static const int at[] = {0, 1, 2, 17, 31};

    for (size_t i = 0; i < base_array_count(at); i++) {
        struct pl_team_stats s;
        struct pl_series unit;
        struct pl_clocks c;

        T_EQ(pl_clocks_init(&c, 2), 0);
        for (int n = 0; n < 32; n++) {
            fold_paused(&c, n == at[i] ? 400 * BASE_NS_PER_MS : 0);
        }
        pl_clocks_read(&c, &s);
        pl_clocks_read_unit(&c, 1, &unit);
        T_LT(unit.mean_ns, 0.55e6);
        T_LT(0.4999e6, unit.mean_ns);
        T_LT(s.service.mean_ns, 1.2e6);
        T_EQ(s.busy_ns, 432 * BASE_NS_PER_MS); /* the time itself is not lost */
        pl_clocks_deinit(&c);
    }
}

TEST(a_slow_core_is_a_slow_unit)
{
    struct pl_series before, now, window;
    struct pl_team_stats s, later;
    struct pl_clocks c;

    T_EQ(pl_clocks_init(&c, 2), 0);
    for (int n = 0; n < 100; n++) {
        fold_paused(&c, 0);
    }
    for (int n = 0; n < 24; n++) {
        fold_paused(&c, 7500 * BASE_NS_PER_US); /* the second unit is 16 times as slow */
    }
    pl_clocks_read(&c, &s);
    pl_clocks_read_unit(&c, 1, &before);
    for (int n = 0; n < 100; n++) {
        fold_paused(&c, 7500 * BASE_NS_PER_US);
    }
    pl_clocks_read(&c, &later);
    pl_clocks_read_unit(&c, 1, &now);
    pl_series_since(&before, &now, &window);
    T_NEAR(window.mean_ns, 8e6, 1);
    pl_series_since(&s.service, &later.service, &window);
    T_NEAR(window.mean_ns, 8.5e6, 1);
    pl_clocks_deinit(&c);
}

/* A unit that takes no time by the clock for a while, and then does. */
TEST(a_unit_may_begin_with_nothing)
{
    struct pl_series unit;
    struct pl_clocks c;

    T_EQ(pl_clocks_init(&c, 1), 0);
    for (int n = 0; n < 100; n++) {
        struct pl_clock_frame f = {.end_ns = n < 10 ? 0 : 50000, .computed = true};

        f.timed = true;
        c.laps[1] = f.end_ns;
        pl_clocks_fold(&c, &f);
    }
    pl_clocks_read_unit(&c, 0, &unit);
    T_NEAR(unit.ewma_ns, 50000, 500);
    pl_clocks_deinit(&c);
}

#define FOLDS 300000u
static void *clock_writer(void *arg)
{
    struct pl_clocks *c = arg;

    for (uint64_t i = 0; i < FOLDS; i++) {
        /* all frames up to the n-th take n ns on average 128 ns */
        struct pl_clock_frame f = {.start_ns = 0, .end_ns = 128, .cpu_ns = 64, .computed = true};

        f.timed = true;
        for (size_t k = 0; k <= c->unit_count; k++) {
            c->laps[k] = k * 128 / c->unit_count;
        }
        pl_clocks_fold(c, &f);
    }
    return NULL;
}

TEST(clocks_samples_are_consistent)
{
    struct pl_clocks c;
    struct pl_team_stats s = {0};
    pthread_t thread;
    uint64_t last = 0, samples = 0;

    T_EQ(pl_clocks_init(&c, 16), 0);
    T_EQ(pthread_create(&thread, NULL, clock_writer, &c), 0);
    do {
        struct pl_series unit;

        pl_clocks_read(&c, &s);
        T_EQ(s.busy_ns, s.frames * 128);
        T_EQ(s.cpu_ns, s.frames * 64);
        T_EQ(s.service.count, s.frames);
        T_TRUE(s.frames >= last);
        last = s.frames;
        pl_clocks_read_unit(&c, (size_t)t_range(0, 15), &unit);
        T_TRUE(unit.count >= last);
        T_TRUE(unit.count == 0 || unit.mean_ns == 8);
        samples++;
    } while (last < FOLDS);
    pthread_join(thread, NULL);
    T_LT(1, samples);
    pl_clocks_deinit(&c);
}

/* ---- members ---- */

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

static _Atomic int threads_left;
static int scarce_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return atomic_fetch_sub(&threads_left, 1) > 0 ? pthread_create(t, attr, fn, arg) : EAGAIN;
}

TEST(members_without_threads_fail_and_do_not_hang)
{
    for (int left = 1; left <= 3; left++) { /* the leader itself takes one */
        struct members_case c = {.cpus = NULL, .width = 4, .result = 1};

        atomic_store(&threads_left, left);
        pl_thread_create = scarce_create;
        run_members(&c);
        pl_thread_create = pthread_create;
        T_EQ(c.result, -EAGAIN);
    }
}

TEST_MAIN()
