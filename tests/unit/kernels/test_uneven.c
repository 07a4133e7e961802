/* SPDX-License-Identifier: Apache-2.0 */
/* Work divided among cores of unequal speed: the shares, and that each part runs once. */
#include "kernels/common/uneven.h"

#include "kernels/common/parallel.h"

#include "tests/harness.h"

#define MEMBERS_MAX 8u

/* The parts of each member. */
static void shares(const double *hints, size_t members, size_t parts, size_t *ret)
{
    struct krn_speed speeds[MEMBERS_MAX] = {{0}};
    struct krn_uneven u = {.members = members, .speeds = speeds};
    struct krn_uneven_job job;

    for (size_t m = 0; m < members; m++) {
        speeds[m].hint = hints[m];
    }
    krn_uneven_begin(&u, parts, NULL, NULL, &job);
    for (size_t m = 0; m < members; m++) {
        uint64_t left = job.runs[m].left;

        ret[m] = (size_t)(uint32_t)left - (size_t)(left >> 32);
    }
}

TEST(parts_are_divided_by_speed)
{
    size_t n[MEMBERS_MAX];

    shares((double[]){3, 1}, 2, 8, n);
    T_EQ(n[0], 6);
    T_EQ(n[1], 2);
    shares((double[]){1, 1}, 2, 8, n);
    T_EQ(n[0], 4);
    T_EQ(n[1], 4);
    /* 6 : 2 takes max(2.4, 2), 5 : 3 takes max(2, 3) */
    shares((double[]){2.5, 1}, 2, 8, n);
    T_EQ(n[0], 6);
    T_EQ(n[1], 2);
    /* four of 2 and four of 1: 32 / 12 of each for a speed of 1, so 5 and 2; the four left over end
     * after 3 wherever they go */
    shares((double[]){2, 2, 2, 2, 1, 1, 1, 1}, 8, 32, n);
    T_EQ(n[0] + n[1] + n[2] + n[3] + n[4] + n[5] + n[6] + n[7], 32);
    for (size_t m = 0; m < 8; m++) {
        T_TRUE((double)n[m] <= (m < 4 ? 6 : 3));
    }
    /* too slow to take part */
    shares((double[]){1, 0.01}, 2, 8, n);
    T_EQ(n[0], 8);
    T_EQ(n[1], 0);
}

static double longest(const double *speed, const size_t *n, size_t members)
{
    double ns = 0;

    for (size_t m = 0; m < members; m++) {
        ns = base_max(ns, (double)n[m] / speed[m]);
    }
    return ns;
}

/* Return: the least time until all of @parts are done, of every division. */
static double least(const double *speed, size_t members, size_t parts)
{
    double best = INFINITY;

    for (size_t n = 0; n <= parts; n++) {
        double rest = members > 1 ? least(speed + 1, members - 1, parts - n) : 0;

        if (members > 1 || n == parts) {
            best = base_min(best, base_max((double)n / speed[0], rest));
        }
    }
    return best;
}

TEST(no_division_ends_sooner)
{
    for (int i = 0; i < t_times(300); i++) {
        size_t members = (size_t)t_range(1, 3), parts = (size_t)t_range(1, 20), n[MEMBERS_MAX];
        double speed[MEMBERS_MAX];

        for (size_t m = 0; m < members; m++) {
            speed[m] = (double)t_range(1, 1000) / 100;
        }
        shares(speed, members, parts, n);
        T_NEAR(longest(speed, n, members), least(speed, members, parts), 1e-9);
    }
}

TEST(a_team_has_eight_parts_for_each_member)
{
    T_EQ(krn_uneven_parts(2), 16);
    T_EQ(krn_uneven_parts(3), 32);
    T_EQ(krn_uneven_parts(4), 32);
    T_EQ(krn_uneven_parts(8), 64);
}

TEST(equal_members_begin_as_other_teams)
{
    struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1}, {.hint = 0.9}};
    struct krn_uneven u = {.members = 2, .speeds = speeds};

    krn_uneven_first(&u);
    T_EQ(krn_uneven_width(&u), 2);
    speeds[1].hint = 0.6; /* half of it takes 1.33 times the best division */
    krn_uneven_first(&u);
    T_EQ(krn_uneven_width(&u), 16);
}

/* Runs a unit that takes so long each way. Return: how often another way than the last one was
 * taken. */
static size_t run_ways(struct krn_uneven *u, const double ns[KRN_UNEVEN_WAYS], size_t times)
{
    size_t tried = 0;

    for (size_t i = 0; i < times; i++) {
        uint8_t way = u->tried;

        tried += u->tried != u->way;
        krn_uneven_took(u, ns[way]);
    }
    return tried;
}

TEST(the_fastest_way_is_found_and_kept)
{
    for (size_t best = 0; best < KRN_UNEVEN_WAYS; best++) {
        struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1}, {.hint = 0.3}};
        struct krn_uneven u = {.members = 2, .speeds = speeds};
        double ns[KRN_UNEVEN_WAYS] = {100, 100, 100, 100};

        krn_uneven_first(&u);
        ns[best] = 90;
        run_ways(&u, ns, 100);
        T_EQ(u.way, best);
        run_ways(&u, ns, 5000);
        T_EQ(u.way, best);
        T_LE(run_ways(&u, ns, 1030), 2 * KRN_UNEVEN_TRIAL);
        /* the machine became another one */
        ns[best] = 130;
        run_ways(&u, ns, 3 * (512 + KRN_UNEVEN_TRIAL));
        T_TRUE(u.way != best);
    }
}

TEST(one_slow_time_does_not_change_the_way)
{
    struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1}, {.hint = 0.3}};
    struct krn_uneven u = {.members = 2, .speeds = speeds};

    krn_uneven_first(&u);
    run_ways(&u, (double[]){100, 140, 140, 140}, 15);
    T_EQ(u.tried, KRN_UNEVEN_FINE);
    krn_uneven_took(&u, 1e6);
    run_ways(&u, (double[]){100, 140, 140, 140}, 100);
    T_EQ(u.way, KRN_UNEVEN_FINE);
}

/* ---- a krn_parallel() ---- */

struct work {
    size_t parts, items, step;
    bool runs; /* takes neighbouring parts at once */
    _Atomic unsigned done[256];
};

static void part_run(void *arg, size_t part)
{
    struct work *w = arg;
    struct krn_range r = (w->runs ? krn_share_run : krn_share)(w->items, w->step, part, w->parts);

    for (size_t i = r.begin; i < r.end; i++) {
        w->done[i]++;
    }
}

static void once(struct krn_uneven *u, pthreadpool_t pool, bool runs)
{
    struct work w = {.parts = krn_uneven_parts(u->members),
                     .items = (size_t)t_range(1, 256),
                     .step = (size_t)t_range(1, 9),
                     .runs = runs};

    krn_parallel_uneven(u);
    krn_parallel(pool, w.parts, part_run, &w);
    krn_parallel_uneven(NULL);
    for (size_t i = 0; i < 256; i++) {
        T_EQ(w.done[i], i < w.items);
    }
}

TEST(every_item_is_done_once)
{
    pthreadpool_t pools[] = {pthreadpool_create(2), pthreadpool_create(3)};

    krn_parallel_yield(true);
    for (int i = 0; i < t_times(2000); i++) {
        struct krn_speed speeds[KRN_UNEVEN_EACH * 3] = {{0}};
        struct krn_uneven u = {.members = 2 + (size_t)i % 2, .speeds = speeds};

        for (size_t m = 0; m < KRN_UNEVEN_EACH * u.members; m++) {
            speeds[m].hint = (double)t_range(1, i % 5 ? 100 : 10000);
        }
        krn_uneven_first(&u);
        once(&u, pools[i % 2], i % 3 > 0);
        krn_uneven_took(&u, 100);
        once(&u, pools[i % 2], true); /* by what was learned */
    }
    pthreadpool_destroy(pools[0]);
    pthreadpool_destroy(pools[1]);
}

/* ---- what is learned: the members one after the other, in this thread ---- */

#define PARTS 16u

struct counted {
    size_t parts, steps; /* steps 0: each part is as much work as another */
    size_t who, done[2]; /* steps that a member did */
};

static void count(void *arg, size_t part)
{
    struct counted *c = arg;

    if (c->steps > 0) {
        struct krn_range r = krn_share_run(c->steps, 1, part, PARTS);

        c->done[c->who] += r.end - r.begin;
    }
    c->parts += krn_parts_end(part, PARTS) - part;
    for (uint64_t from = base_now_ns(); base_now_ns() - from < 3000;) {
    }
}

/* Members run in the order of @who. */
static void run_members(struct krn_uneven *u, struct counted *c, const size_t *who,
                        struct krn_uneven_job *job)
{
    c->parts = 0;
    krn_uneven_begin(u, PARTS, count, c, job);
    for (size_t i = 0; i < u->members; i++) {
        c->who = who[i];
        krn_uneven_member(job, who[i]);
    }
    krn_uneven_end(job);
    krn_uneven_took(u, 100);
    T_EQ(c->parts, PARTS);
}

TEST(a_member_without_work_takes_over)
{
    struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1, .done = 8, .ns = 8e3}, {.hint = 1}};
    struct krn_uneven u = {.members = 2, .speeds = speeds, .left = 100};
    struct krn_uneven_job job;
    struct counted c = {0};

    /* the second one was never measured: by its hint it is as fast. It has not begun: its parts but
     * the last one are taken */
    run_members(&u, &c, (size_t[]){0, 1}, &job);
    T_EQ(job.speed[1] == job.speed[0], 1);
    T_EQ(job.runs[0].done, PARTS - 1);
    T_EQ(job.runs[1].done, 1);
    T_NEAR(speeds[0].done, 7.0 / 8 * 8 + 15.0 / 16, 1e-9);
    T_NEAR(speeds[1].done, 1.0 / 16, 1e-9);
}

TEST(a_member_that_is_given_nothing_is_measured_again)
{
    struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1, .done = 8, .ns = 8e3},
                                                    {.hint = 1, .done = 1, .ns = 8e6}};
    struct krn_uneven u = {.members = 2, .speeds = speeds, .left = 100};
    struct krn_uneven_job job;
    struct counted c = {0};

    T_TRUE(!krn_uneven_begin(&u, PARTS, count, &c, &job)); /* nobody is waited for */
    u.calls = 0;
    run_members(&u, &c, (size_t[]){1, 0}, &job);
    T_EQ(job.runs[1].done, 0);
    T_NEAR(speeds[1].done, 1.02, 1e-9);
}

TEST(a_member_that_comes_too_late_counts_for_slow)
{
    struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1, .done = 8, .ns = 1e3},
                                                    {.hint = 1, .done = 8, .ns = 8e3}};
    struct krn_uneven u = {.members = 2, .speeds = speeds, .left = 100};
    struct krn_uneven_job job;
    struct counted c = {0};

    /* as if it had done a fourth of a part, but in at most twice the time expected for that */
    run_members(&u, &c, (size_t[]){0, 1}, &job);
    T_EQ(job.runs[0].done, PARTS);
    T_NEAR(speeds[1].done, 7 + 0.25 / PARTS, 1e-9);
    T_NEAR(speeds[1].ns, 7e3 + 2 * 0.25 / PARTS * 1e3, 1e-6);
}

TEST(work_in_few_steps_counts_as_what_it_was)
{
    struct krn_speed speeds[KRN_UNEVEN_EACH * 2] = {{.hint = 1, .done = 8, .ns = 8e3},
                                                    {.hint = 1, .done = 8, .ns = 24e3}};
    struct krn_uneven u = {.members = 2, .speeds = speeds, .left = 100};
    struct krn_uneven_job job;
    struct counted c = {.steps = 3};

    run_members(&u, &c, (size_t[]){1, 0}, &job);
    T_EQ(c.done[0] + c.done[1], 3);
    T_TRUE(c.done[0] > 0 && c.done[1] > 0);
    T_NEAR(speeds[0].done, 7 + (double)c.done[0] / 3, 1e-9);
    T_NEAR(speeds[1].done, 7 + (double)c.done[1] / 3, 1e-9);
}

TEST_MAIN()
