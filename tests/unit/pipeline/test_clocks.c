/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "pipeline/clocks.h"
#include "pipeline/stats.h"
#include "tests/harness.h"

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
            struct pl_clock_run f = {.start_ns = 1000, .computed = 1};

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
        struct pl_clock_run f = {.start_ns = 500, .end_ns = 1500, .computed = 1};

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

/* One frame of 1 ms in two even units but for @pause_ns inside the second. The CPU clock was not
 * read unless the clocks ask for it; then it says that the team worked all that time. */
static void fold_paused(struct pl_clocks *c, uint64_t pause_ns)
{
    struct pl_clock_run f = {.end_ns = BASE_NS_PER_MS + pause_ns, .computed = 1};

    f.timed = true;
    f.clocked = c->doubtful;
    f.own_ns = f.end_ns;
    c->laps[1] = BASE_NS_PER_MS / 2;
    c->laps[2] = f.end_ns;
    pl_clocks_judge(c, &f);
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
    for (int n = 0; n < 25; n++) {
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

#define MS BASE_NS_PER_MS
/* Return: the average of service times after a run of @computed frames that took @each_ns each. */
static double served(struct pl_clocks *c, uint64_t each_ns, size_t computed)
{
    struct pl_clock_run f = {.end_ns = each_ns * computed, .computed = computed};

    pl_clocks_fold(c, &f);
    return pl_clocks_service_ns(c);
}

/* One slow run may be anything; a second one tells that the core is slow, or free again. */
TEST(two_runs_tell_a_change)
{
    for (size_t computed = 1; computed <= 4; computed += 3) {
        struct pl_clocks c;

        T_EQ(pl_clocks_init(&c, 0), 0);
        for (int n = 0; n < 20; n++) {
            served(&c, 100 * MS, computed);
        }
        T_LT(served(&c, 520 * MS, computed), 200e6);
        T_LT(500e6, served(&c, 510 * MS, computed));
        T_LT(400e6, served(&c, 505 * MS, computed));
        T_LT(200e6, served(&c, 100 * MS, computed));
        T_LT(served(&c, 102 * MS, computed), 103e6);
        pl_clocks_deinit(&c);
    }
}

/* What comes and goes with every run, and what a time slice of others takes, is averaged. */
TEST(noise_is_no_change)
{
    static const struct {
        uint64_t ms[2];
        double within;
    } times[] = {{{100, 190}, 0.4}, /* pairs of runs nearly twice as long: the average follows */
                 {{100, 160}, 0.2},
                 {{3, 7}, 0.2},
                 {{1, 5}, 0.2}};

    for (size_t k = 0; k < base_array_count(times); k++) {
        double mean = (double)(times[k].ms[0] + times[k].ms[1]) * MS / 2;
        struct pl_clocks c;

        T_EQ(pl_clocks_init(&c, 0), 0);
        for (int n = 0; n < 400; n++) {
            double is =
                served(&c, times[k].ms[n % 4 / 2] * MS, 1); /* twice the one, twice the other */

            if (n > 100) {
                T_NEAR(is, mean, mean * times[k].within);
            }
        }
        pl_clocks_deinit(&c);
    }
}

/* A frame of three units: their laps, and the leader's CPU time; 0: not read. */
struct scripted {
    uint64_t laps[3], own_ns;
};

static void fold_laps(struct pl_clocks *c, const uint64_t laps[3], struct pl_clock_run *f)
{
    f->end_ns = laps[2];
    f->computed = 1;
    f->timed = true;
    c->laps[0] = 0;
    for (size_t i = 0; i < 3; i++) {
        c->laps[i + 1] = laps[i];
    }
    pl_clocks_judge(c, f);
    pl_clocks_fold(c, f);
}

static void fold_scripted(struct pl_clocks *c, const struct scripted *s)
{
    struct pl_clock_run f = {.clocked = s->own_ns > 0, .own_ns = s->own_ns};

    fold_laps(c, s->laps, &f);
}

/* Units of 2, 3 and 5 ms; a program takes time in some of them. Every frame counts, and units add
 * up to what the team worked. */
TEST(what_others_took_is_no_work)
{
    static const struct scripted quiet = {{2 * MS, 5 * MS, 10 * MS}, 10 * MS};
    static const struct scripted taken[] = {
        {{2 * MS, 5 * MS, 40 * MS}, 10 * MS},   /* a time slice in unit 2 */
        {{32 * MS, 35 * MS, 40 * MS}, 10 * MS}, /* in unit 0 */
        {{12 * MS, 15 * MS, 30 * MS}, 10 * MS}, /* in units 0 and 2 */
        {{2 * MS, 5 * MS, 40 * MS}, 0},         /* the CPU clock was not read */
    };
    static const double means[] = {2e6, 3e6, 5e6};

    for (size_t k = 0; k < base_array_count(taken); k++) {
        struct pl_team_stats s;
        struct pl_clocks c;

        T_EQ(pl_clocks_init(&c, 3), 0);
        for (int n = 0; n < 12; n++) {
            fold_scripted(&c, n % 2 ? &taken[k] : &quiet);
        }
        for (size_t i = 0; i < 3; i++) {
            struct pl_series unit;

            pl_clocks_read_unit(&c, i, &unit);
            T_EQ(unit.count, 12);
            T_NEAR(unit.mean_ns, means[i], 2);
            T_NEAR(unit.ewma_ns, means[i], 2);
        }
        pl_clocks_read(&c, &s);
        T_EQ(s.work.count, 12);
        T_NEAR(s.work.mean_ns, 10e6, 1);
        T_LT(12e6, s.service.mean_ns); /* which adaptation watches */
        T_EQ(s.busy_ns, 6 * (quiet.laps[2] + taken[k].laps[2]));
        pl_clocks_deinit(&c);
    }
}

/* A frame of a team of two: its laps, and for how long the leader and the worker lacked a core. */
struct scripted_team {
    uint64_t laps[3], leader_ns, worker_ns;
};

static void fold_team(struct pl_clocks *c, const struct scripted_team *s)
{
    struct pl_clock_run f = {.clocked = true,
                             .own_ns = s->laps[2] - s->leader_ns,
                             .lost_most_ns = s->worker_ns,
                             .lost_sum_ns = s->worker_ns};

    fold_laps(c, s->laps, &f);
}

/* The leader spins while a worker lacks its core, which is CPU time and not work. Both may lack
 * theirs at once or one after the other. */
TEST(what_a_member_lacked_is_no_work)
{
    static const struct scripted_team quiet = {{2 * MS, 5 * MS, 10 * MS}, 0, 0};
    static const struct scripted_team taken[] = {
        {{2 * MS, 5 * MS, 40 * MS}, 0, 30 * MS},         /* of the worker, in unit 2 */
        {{32 * MS, 35 * MS, 40 * MS}, 0, 30 * MS},       /* in unit 0 */
        {{2 * MS, 35 * MS, 40 * MS}, 20 * MS, 10 * MS},  /* of both, one after the other */
        {{2 * MS, 35 * MS, 40 * MS}, 30 * MS, 30 * MS},  /* at the same time */
        {{22 * MS, 25 * MS, 40 * MS}, 20 * MS, 20 * MS}, /* in part */
    };
    static const double means[] = {2e6, 3e6, 5e6};

    for (size_t k = 0; k < base_array_count(taken); k++) {
        struct pl_team_stats s;
        struct pl_clocks c;

        T_EQ(pl_clocks_init(&c, 3), 0);
        for (int n = 0; n < 12; n++) {
            fold_team(&c, n % 2 ? &taken[k] : &quiet);
        }
        for (size_t i = 0; i < 3; i++) {
            struct pl_series unit;

            pl_clocks_read_unit(&c, i, &unit);
            T_EQ(unit.count, 12);
            T_NEAR(unit.ewma_ns, means[i], 2);
        }
        pl_clocks_read(&c, &s);
        T_NEAR(s.work.mean_ns, 10e6, 1);
        pl_clocks_deinit(&c);
    }
}

/* The first frames tell only between what the work is; they count with the first in which no member
 * lacked its core. If there is none for a while, the middle is taken until there is. A unit that
 * really takes longer, since its parts are uneven, say, is believed. */
TEST(a_team_is_known_by_its_undisturbed_frames)
{
    static const struct scripted_team both = {{2 * MS, 35 * MS, 40 * MS}, 28 * MS, 28 * MS};
    static const struct scripted_team one = {{2 * MS, 35 * MS, 40 * MS}, 0, 30 * MS};
    static const struct scripted_team quiet = {{2 * MS, 5 * MS, 10 * MS}, 0, 0};
    static const struct scripted_team slow = {{2 * MS, 5 * MS, 20 * MS}, 0, 0};
    struct pl_series unit;
    struct pl_team_stats s;
    struct pl_clocks c;

    for (int before = 4; before <= 40; before += 36) {
        T_EQ(pl_clocks_init(&c, 3), 0);
        for (int n = 0; n < before; n++) {
            fold_team(&c, &both);
            T_TRUE(c.doubtful || c.known); /* so that the next one is read */
        }
        pl_clocks_read(&c, &s);
        T_EQ(s.work.count, before == 40 ? 40 : 0);
        T_LE(s.work.ewma_ns, 12e6);
        fold_team(&c, &quiet);
        pl_clocks_read(&c, &s);
        T_EQ(s.work.count, before + 1);
        if (before == 4) {
            T_NEAR(s.work.mean_ns, 10e6, 1);
        }
        for (int n = 0; n < 80; n++) {
            fold_team(&c, n % 4 ? &both : &one);
        }
        pl_clocks_read(&c, &s);
        pl_clocks_read_unit(&c, 2, &unit);
        T_EQ(unit.count, s.frames);
        T_NEAR(s.work.ewma_ns, 10e6, 1e6);
        pl_clocks_deinit(&c);
    }
    T_EQ(pl_clocks_init(&c, 3), 0);
    for (int n = 0; n < 60; n++) {
        fold_team(&c, &slow);
    }
    pl_clocks_read(&c, &s);
    T_NEAR(s.work.ewma_ns, 20e6, 1e4);
    pl_clocks_deinit(&c);
}

/* Others take half of the core from the first frame on: nothing is known of the units but their
 * expected shares, which are wrong. The time slice ends in each unit in turn. */
TEST(units_are_told_apart_where_nothing_is_quiet)
{
    static const double shares[] = {0.6, 0.2, 0.2}, want[] = {2e6, 3e6, 5e6};
    double sum = 0;
    struct pl_clocks c;

    T_EQ(pl_clocks_init(&c, 3), 0);
    c.shares = shares;
    for (uint64_t n = 0; n < 300; n++) {
        struct scripted s = {{2 * MS, 5 * MS, 10 * MS}, 10 * MS};
        size_t hit = n % 10 < 2 ? 0 : n % 10 < 5 ? 1 : 2; /* as often as it runs */

        for (size_t i = hit; i < 3; i++) {
            s.laps[i] += 10 * MS;
        }
        fold_scripted(&c, &s);
    }
    for (size_t i = 0; i < 3; i++) {
        struct pl_series unit;

        pl_clocks_read_unit(&c, i, &unit);
        T_EQ(unit.count, 300);
        T_NEAR(unit.ewma_ns, want[i], 0.15 * want[i]);
        sum += unit.ewma_ns;
    }
    T_NEAR(sum, 10e6, 5e5);
    pl_clocks_deinit(&c);
}

/* A run that takes longer than usual without a reading is doubted, and the next one read. What is
 * really slower is believed then. */
TEST(a_slow_run_is_read_next)
{
    static const struct scripted quiet = {{2 * MS, 5 * MS, 10 * MS}, 0};
    static const struct scripted slow = {{4 * MS, 10 * MS, 20 * MS}, 0};
    static const struct scripted read = {{4 * MS, 10 * MS, 20 * MS}, 20 * MS};
    struct pl_series unit;
    struct pl_clocks c;

    T_EQ(pl_clocks_init(&c, 3), 0);
    for (int n = 0; n < 10; n++) {
        fold_scripted(&c, &quiet);
        T_TRUE(!c.doubtful);
    }
    fold_scripted(&c, &slow);
    T_TRUE(c.doubtful);
    pl_clocks_read_unit(&c, 1, &unit);
    T_NEAR(unit.mean_ns, 3e6, 2);
    for (int n = 0; n < 60; n++) {
        fold_scripted(&c, c.doubtful ? &read : &slow);
    }
    pl_clocks_read_unit(&c, 1, &unit);
    T_EQ(unit.count, 71);
    T_LT(5.9e6, unit.ewma_ns);
    c.coarse = true; /* a CPU clock of whole ticks tells nothing */
    fold_scripted(&c, &(struct scripted){{4 * MS, 10 * MS, 20 * MS}, 1});
    pl_clocks_read_unit(&c, 1, &unit);
    T_LT(5.9e6, unit.ewma_ns);
    pl_clocks_deinit(&c);
}

/* A unit that takes no time by the clock for a while, and then does. */
TEST(a_unit_may_begin_with_nothing)
{
    struct pl_series unit;
    struct pl_clocks c;

    T_EQ(pl_clocks_init(&c, 1), 0);
    for (int n = 0; n < 100; n++) {
        struct pl_clock_run f = {.end_ns = n < 10 ? 0 : 50000, .computed = 1};

        f.timed = true;
        c.laps[1] = f.end_ns;
        pl_clocks_fold(&c, &f);
    }
    pl_clocks_read_unit(&c, 0, &unit);
    T_NEAR(unit.ewma_ns, 50000, 500);
    pl_clocks_deinit(&c);
}

/* A program of higher priority took its core, say. */
TEST(a_writer_that_stays_away_holds_nobody)
{
    struct pl_team_stats s = {0};
    struct pl_series unit;
    struct pl_clocks c;

    T_EQ(pl_clocks_init(&c, 2), 0);
    for (int n = 0; n < 32; n++) {
        fold_paused(&c, 0);
    }
    T_TRUE(pl_clocks_read(&c, &s) && pl_clocks_read_unit(&c, 1, &unit));
    atomic_fetch_add(&c.version, 1); /* as in the middle of a fold */
    T_TRUE(!pl_clocks_read(&c, &s) && !pl_clocks_read_unit(&c, 1, &unit));
    T_EQ(s.frames, 32);
    T_NEAR(unit.mean_ns, 0.5e6, 1);
    atomic_fetch_add(&c.version, 1);
    T_TRUE(pl_clocks_read(&c, &s) && pl_clocks_read_unit(&c, 1, &unit));
    pl_clocks_deinit(&c);
}

TEST_MAIN()
