/* SPDX-License-Identifier: Apache-2.0 */
/* Whose frame is next: fair among users and streams, by weight and measured cost, on a clock that
 * is the sum of the costs; against bounds that must hold under random use. */
#include "daemon/frames/admission.h"
#include "tests/harness.h"

#define MS BASE_NS_PER_MS

static struct dmn_queue *take(struct dmn_admission *a)
{
    struct dmn_queue *q = dmn_admission_next(a);

    if (q) {
        uint64_t expected = dmn_admission_taken(a, q);

        dmn_admission_measured(a, q, expected, MS);
    }
    return q;
}

static void join(struct dmn_admission *a, struct dmn_queue *q, unsigned priority, uid_t uid)
{
    dmn_queue_init(q, priority);
    dmn_queue_join(a, q, uid, 1);
}

static void add(struct dmn_admission *a, struct dmn_queue *q, int count)
{
    while (count-- > 0) {
        dmn_admission_add(a, q);
    }
}

static void end(struct dmn_admission *a, struct dmn_queue *q, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (q[i].flow.waiting > 0) {
            dmn_admission_drop(a, &q[i]);
        }
        dmn_queue_leave(&q[i]);
    }
    T_EQ(a->waiting, 0);
    T_TRUE(dmn_admission_next(a) == NULL);
    dmn_admission_deinit(a);
}

TEST(nobody_waits)
{
    struct dmn_admission a;

    dmn_admission_init(&a);
    T_TRUE(dmn_admission_next(&a) == NULL);
    T_EQ(a.waiting, 0);
    dmn_admission_deinit(&a);
}

TEST(other_users_are_those_with_streams)
{
    struct dmn_admission a;
    struct dmn_queue q[3];

    dmn_admission_init(&a);
    join(&a, &q[0], 0, 1000);
    T_TRUE(!dmn_admission_others(&a, &q[0]));
    join(&a, &q[1], 0, 1000); /* the same user */
    T_TRUE(!dmn_admission_others(&a, &q[0]));
    join(&a, &q[2], 0, 1001);
    T_TRUE(dmn_admission_others(&a, &q[0]) && dmn_admission_others(&a, &q[2]));
    dmn_queue_leave(&q[2]);
    T_TRUE(!dmn_admission_others(&a, &q[0]));
    end(&a, q, 2);
}

TEST(streams_take_turns)
{
    struct dmn_admission a;
    struct dmn_queue q[3];

    dmn_admission_init(&a);
    for (int i = 0; i < 3; i++) {
        join(&a, &q[i], 0, 7);
    }
    add(&a, &q[0], 100); /* one greedy stream, first in line */
    add(&a, &q[1], 5);
    add(&a, &q[2], 5);
    for (int round = 0; round < 5; round++) {
        T_TRUE(take(&a) == &q[0]);
        T_TRUE(take(&a) == &q[1]);
        T_TRUE(take(&a) == &q[2]);
    }
    for (int i = 0; i < 95; i++) {
        T_TRUE(take(&a) == &q[0]);
    }
    T_TRUE(take(&a) == NULL);
    end(&a, q, 3);
}

TEST(priority_is_a_share_not_a_right)
{
    for (uid_t other = 0; other < 2; other++) { /* of the same user, and of another */
        struct dmn_admission a;
        struct dmn_queue q[2];
        int turns[2] = {0};

        dmn_admission_init(&a);
        join(&a, &q[0], 0, 0);
        join(&a, &q[1], 3, other);
        add(&a, &q[0], 900);
        add(&a, &q[1], 900);
        for (int i = 0; i < 90; i++) {
            turns[take(&a) == &q[1]]++;
        }
        T_EQ(turns[0], 10); /* 1 : 8 */
        T_EQ(turns[1], 80);
        end(&a, q, 2);
    }
}

TEST(priority_above_the_highest_is_the_highest)
{
    struct dmn_queue q;

    dmn_queue_init(&q, 4000000000u);
    T_EQ(q.weight, 8);
}

TEST(more_streams_are_not_a_larger_share)
{
    struct dmn_admission a;
    struct dmn_queue q[9];
    int turns[2] = {0};

    dmn_admission_init(&a);
    for (int i = 0; i < 9; i++) {
        join(&a, &q[i], 0, i < 8 ? 1 : 2);
        add(&a, &q[i], 1000);
    }
    for (int i = 0; i < 400; i++) {
        turns[take(&a) == &q[8]]++;
    }
    T_EQ(turns[0], 200);
    T_EQ(turns[1], 200);
    end(&a, q, 9);
}

TEST(users_have_weights)
{
    struct dmn_admission a;
    struct dmn_queue q[2];
    int turns[2] = {0};

    dmn_admission_init(&a);
    for (unsigned i = 0; i < 2; i++) {
        dmn_queue_init(&q[i], 0);
        dmn_queue_join(&a, &q[i], i, i ? 3 : 1);
        add(&a, &q[i], 1000);
    }
    for (int i = 0; i < 400; i++) {
        turns[take(&a) == &q[1]]++;
    }
    T_EQ(turns[0], 100);
    T_EQ(turns[1], 300);
    end(&a, q, 2);
}

TEST(who_connects_again_gets_no_new_share)
{
    struct dmn_admission a;
    struct dmn_queue q[2];
    int turns[2] = {0};

    dmn_admission_init(&a);
    join(&a, &q[0], 0, 0);
    join(&a, &q[1], 0, 1);
    add(&a, &q[0], 1000);
    for (int i = 0; i < 400; i++) {
        if (q[1].flow.waiting == 0) { /* a connection for each frame */
            dmn_queue_leave(&q[1]);
            join(&a, &q[1], 0, 1);
            add(&a, &q[1], 1);
        }
        turns[take(&a) == &q[1]]++;
    }
    T_EQ(turns[0], 200);
    end(&a, q, 2);
}

TEST(dropped_frames_leave_the_rest_whole)
{
    struct dmn_admission a;
    struct dmn_queue q[4];

    dmn_admission_init(&a);
    for (int i = 0; i < 4; i++) {
        join(&a, &q[i], 0, 0);
        add(&a, &q[i], 1);
    }
    dmn_admission_drop(&a, &q[0]); /* whose turn it is */
    dmn_admission_drop(&a, &q[2]);
    T_EQ(a.waiting, 2);
    T_TRUE(take(&a) == &q[1]);
    T_TRUE(take(&a) == &q[3]);
    end(&a, q, 4);
}

/* Streams that keep a queue, beside one that has at most one frame and gives it up if it has had
 * its turn: the way of the policies "block" and "reject". */
TEST(who_does_not_wait_has_a_share_too)
{
    struct dmn_admission a;
    struct dmn_queue q[3];
    int turns[3] = {0}, gave_up = 0;

    dmn_admission_init(&a);
    for (int i = 0; i < 3; i++) {
        join(&a, &q[i], 0, i == 2 ? 1 : 0);
    }
    add(&a, &q[0], 1000);
    add(&a, &q[1], 1000);
    for (int i = 0; i < 400; i++) {
        if (q[2].flow.waiting == 0) {
            add(&a, &q[2], 1);
            if (!dmn_admission_has_turn(&a, &q[2])) {
                dmn_admission_drop(&a, &q[2]);
                gave_up++;
            }
        }
        turns[take(&a) - q]++;
    }
    T_LE(199, turns[2]); /* half: the others are one user */
    T_EQ(turns[0] / 2, turns[1] / 2);
    T_LT(100, gave_up);
    end(&a, q, 3);
}

/* Users whose frames cost different times, known only afterwards, and change: while all wait, each
 * gets its share of the time, within a few frames of each. */
TEST(shares_are_shares_of_time)
{
    enum { USERS = 5 };
    for (int round = 0; round < t_times(50); round++) {
        struct dmn_admission a;
        struct dmn_queue q[USERS];
        uint64_t cost[USERS], got[USERS] = {0}, largest = 0;
        unsigned weight[USERS];

        dmn_admission_init(&a);
        for (unsigned i = 0; i < USERS; i++) {
            weight[i] = (unsigned)t_range(1, 5);
            cost[i] = (uint64_t)t_range(1, 1000) * 1000;
            dmn_queue_init(&q[i], 0);
            dmn_queue_join(&a, &q[i], i, weight[i]);
            add(&a, &q[i], 3);
        }
        for (int turn = 0; turn < 20000; turn++) {
            struct dmn_queue *next = dmn_admission_next(&a);
            size_t i = (size_t)(next - q);
            uint64_t expected = dmn_admission_taken(&a, next);
            uint64_t took = cost[i] + (uint64_t)t_range(0, (int64_t)cost[i]);

            if (t_range(0, 999) == 0) {
                cost[i] = (uint64_t)t_range(1, 1000) * 1000;
            }
            dmn_admission_measured(&a, next, expected, took);
            got[i] += took;
            largest = base_max(largest, base_max(took, expected));
            add(&a, next, 1);
        }
        for (size_t i = 1; i < USERS; i++) {
            double here = (double)got[i] / weight[i], there = (double)got[0] / weight[0];

            T_LE(here - there, 2.0 * (double)largest);
            T_LE(there - here, 2.0 * (double)largest);
        }
        end(&a, q, USERS);
    }
}

/* Nobody who waits is passed over for more turns than its share explains, whoever comes and
 * goes. */
TEST(random_use_starves_nobody)
{
    enum { STREAMS = 8 };
    struct dmn_admission a;
    struct dmn_queue q[STREAMS];
    size_t waiting[STREAMS] = {0}, passed[STREAMS] = {0}, total = 0;

    dmn_admission_init(&a);
    for (unsigned i = 0; i < STREAMS; i++) {
        join(&a, &q[i], i % 4, i / 3);
    }
    for (int step = 0; step < 200000; step++) {
        size_t i = (size_t)t_range(0, STREAMS - 1);
        int what = (int)t_range(0, 9);

        if (what < 4) {
            add(&a, &q[i], 1);
            passed[i] = waiting[i]++ ? passed[i] : 0;
            total++;
        } else if (what == 4 && waiting[i]) {
            dmn_admission_drop(&a, &q[i]);
            waiting[i]--;
            total--;
        } else {
            struct dmn_queue *next = take(&a);

            T_EQ(next == NULL, total == 0);
            for (size_t k = 0; next && k < STREAMS; k++) {
                if (next == &q[k]) {
                    T_LT(0, waiting[k]);
                    waiting[k]--;
                    total--;
                    passed[k] = 0;
                } else if (waiting[k]) {
                    passed[k]++;
                    /* 3 users, 3 streams each, weights up to 8 at both levels */
                    T_LE(passed[k], 3 * 8 * 3 * 8);
                }
            }
        }
        T_EQ(a.waiting, total);
    }
    end(&a, q, STREAMS);
}

/* The estimate of the frames in front is what really goes in front. */
TEST(frames_ahead_are_counted)
{
    enum { STREAMS = 6 };
    for (int round = 0; round < t_times(500); round++) {
        struct dmn_admission a;
        struct dmn_queue q[STREAMS], *next;
        size_t mine = (size_t)t_range(0, STREAMS - 1), ahead, before = 0, own;

        dmn_admission_init(&a);
        for (unsigned i = 0; i < STREAMS; i++) {
            join(&a, &q[i], 0, i % 2);
            add(&a, &q[i], 30);
        }
        for (int i = 0; i < 60; i++) {
            take(&a);
        }
        add(&a, &q[t_range(0, STREAMS - 1)], (int)t_range(0, 9));
        own = q[mine].flow.waiting;
        ahead = dmn_admission_ahead(&a, &q[mine], own);
        add(&a, &q[mine], 1);
        while ((next = take(&a)) != &q[mine] || own-- > 0) {
            before++;
        }
        T_LE(before, ahead + 2);
        T_LE(ahead, before + 2);
        end(&a, q, STREAMS);
    }
}

/* Tags wrap around after centuries, and a flow may sleep for as long. */
TEST(virtual_time_wraps_around)
{
    struct dmn_admission a;
    struct dmn_queue q[3];
    int turns[3] = {0};

    dmn_admission_init(&a);
    a.users.now = UINT64_MAX - 1000;
    for (int i = 0; i < 3; i++) {
        join(&a, &q[i], 0, (uid_t)i);
    }
    q[2].share->flow.start = a.users.now + (UINT64_MAX >> 2); /* long ago */
    for (int i = 0; i < 3; i++) {
        q[i].share->streams.now = UINT64_MAX - 1000;
        add(&a, &q[i], 1000);
    }
    for (int i = 0; i < 300; i++) {
        turns[take(&a) - q]++;
    }
    for (int i = 0; i < 3; i++) {
        T_EQ(turns[i], 100);
    }
    end(&a, q, 3);
}

TEST(deadlines_that_cannot_be_met)
{
    T_TRUE(!dmn_admission_misses_deadline(0, 1000, 100, 10, 10)); /* none */
    T_TRUE(dmn_admission_misses_deadline(1000, 1000, 0, 0, 0));   /* over */
    T_TRUE(dmn_admission_misses_deadline(999, 1000, 0, 0, 0));
    T_TRUE(!dmn_admission_misses_deadline(1001, 1000, 0, 9999, 9999)); /* an empty pipeline tries */
    T_TRUE(!dmn_admission_misses_deadline(1001, 1000, 5, 0, 1000));    /* nothing known */
    T_TRUE(!dmn_admission_misses_deadline(1160, 1000, 10, 10, 60));
    T_TRUE(dmn_admission_misses_deadline(1159, 1000, 10, 10, 60));
    /* a time that overflows is never */
    T_TRUE(dmn_admission_misses_deadline(UINT64_MAX, 0, SIZE_MAX, UINT64_MAX, 1));
    T_TRUE(dmn_admission_misses_deadline(UINT64_MAX, 0, 1, UINT64_MAX, 1));
}

TEST_MAIN()
