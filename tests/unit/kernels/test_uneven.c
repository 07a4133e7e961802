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

TEST(a_team_has_four_parts_for_each_member)
{
    T_EQ(krn_uneven_parts(2), 8);
    T_EQ(krn_uneven_parts(3), 16);
    T_EQ(krn_uneven_parts(4), 16);
    T_EQ(krn_uneven_parts(8), 32);
}

TEST(equal_members_divide_as_other_teams)
{
    struct krn_speed speeds[] = {{.hint = 1}, {.hint = 0.9}};
    const struct krn_uneven u = {.members = 2, .speeds = speeds};

    T_EQ(krn_uneven_width(&u), 2);
    speeds[1].hint = 0.6; /* half of it takes 1.33 times the best division */
    T_EQ(krn_uneven_width(&u), 8);
    speeds[0] = (struct krn_speed){.hint = 1, .done = 1, .ns = 1e6};
    speeds[1] = (struct krn_speed){.hint = 0.3, .done = 1, .ns = 1.1e6};
    T_EQ(krn_uneven_width(&u), 2); /* what was measured counts */
}

TEST(the_leader_runs_a_unit_alone_where_that_is_faster)
{
    struct krn_uneven u = {.members = 2};
    size_t tried = 0;

    for (int i = 0; i < 1 + 15; i++) {
        T_TRUE(!krn_uneven_alone(&u));
        krn_uneven_took(&u, 100);
    }
    T_TRUE(krn_uneven_alone(&u)); /* a trial: it is slower */
    krn_uneven_took(&u, 120);
    for (int i = 0; i < 31; i++) {
        T_TRUE(!krn_uneven_alone(&u));
        krn_uneven_took(&u, 100);
    }
    T_TRUE(krn_uneven_alone(&u));
    krn_uneven_took(&u, 0); /* 120 - 120 / 4 = 90: faster */
    for (int i = 0; i < 2000; i++) {
        tried += !krn_uneven_alone(&u);
        krn_uneven_took(&u, krn_uneven_alone(&u) ? 90 : 100);
    }
    T_TRUE(u.alone);
    T_EQ(tried, 6); /* after 16, 32, 64, ... */
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
        struct krn_speed speeds[MEMBERS_MAX] = {{0}};
        struct krn_uneven u = {.members = 2 + (size_t)i % 2, .speeds = speeds};

        for (size_t m = 0; m < u.members; m++) {
            speeds[m].hint = (double)t_range(1, 100);
        }
        once(&u, pools[i % 2], i % 3 > 0);
        once(&u, pools[i % 2], true); /* by what was learned */
    }
    pthreadpool_destroy(pools[0]);
    pthreadpool_destroy(pools[1]);
}

/* ---- what is learned: the members one after the other, in this thread ---- */

static void nothing(void *arg, size_t part)
{
    size_t *parts = arg;

    *parts += krn_parts_end(part, 8) - part;
    (void)base_now_ns();
}

TEST(a_member_without_work_takes_over_and_is_measured_again)
{
    struct krn_speed speeds[2] = {{.hint = 1, .done = 8, .ns = 8e3}, {.hint = 1}};
    struct krn_uneven u = {.members = 2, .speeds = speeds};
    struct krn_uneven_job job;
    size_t parts = 0;

    /* the second one was never measured: by its hint it is as fast */
    krn_uneven_begin(&u, 8, nothing, &parts, &job);
    T_EQ(job.speed[1] == job.speed[0], 1);
    krn_uneven_member(&job, 0); /* the other has not begun: its parts but the last one are taken */
    T_EQ(job.runs[0].done, 7);
    krn_uneven_member(&job, 1);
    T_EQ(job.runs[1].done, 1);
    T_EQ(parts, 8);
    krn_uneven_end(&job);
    T_NEAR(speeds[0].done, 7.0 / 8 * 8 + 7.0 / 8, 1e-9);
    T_NEAR(speeds[1].done, 1.0 / 8, 1e-9);

    /* so slow that it gets nothing: it counts for faster each time */
    speeds[0] = (struct krn_speed){.hint = 1, .done = 8, .ns = 8e3};
    speeds[1] = (struct krn_speed){.hint = 1, .done = 1, .ns = 8e6};
    parts = 0;
    krn_uneven_begin(&u, 8, nothing, &parts, &job);
    krn_uneven_member(&job, 1);
    krn_uneven_member(&job, 0);
    krn_uneven_end(&job);
    T_EQ(parts, 8);
    T_EQ(job.runs[1].done, 0);
    T_NEAR(speeds[1].done, 1.02, 1e-9);

    /* it came when the other had done all: as if it had done a fourth of a part in that time */
    speeds[0] = (struct krn_speed){.hint = 1, .done = 8, .ns = 2e3};
    speeds[1] = (struct krn_speed){.hint = 1, .done = 8, .ns = 8e3};
    krn_uneven_begin(&u, 8, nothing, &parts, &job);
    krn_uneven_member(&job, 0);
    T_EQ(job.runs[0].done, 8);
    krn_uneven_member(&job, 1);
    krn_uneven_end(&job);
    T_NEAR(speeds[1].done, 7 + 0.25 / 8, 1e-9);
    T_LE(7e3 + (double)job.runs[0].ns - 1e-6, speeds[1].ns);
}

TEST_MAIN()
