/* SPDX-License-Identifier: Apache-2.0 */
/* Whose messages the loop handles: users share its time, whatever their messages cost and however
 * many connections they have; on a clock that the work itself moves on. */
#include "base/base.h"
#include "daemon/service/loop_turns.h"
#include "tests/harness.h"

#define US BASE_NS_PER_US
#define MS BASE_NS_PER_MS
#define ALICE 1001u
#define BOB 1002u

static uint64_t clock_ns;

static uint64_t now_ns(void)
{
    return clock_ns;
}

/* A connection whose client has sent so many messages of the same cost. */
struct sender {
    struct dmn_loop_task task;
    uint64_t cost_ns;
    size_t left, handled;
    bool leaves;
};

static void handle(struct dmn_loop_task *task)
{
    struct sender *s = base_container_of(task, struct sender, task);

    T_TRUE(!dmn_loop_over(task->turns));
    do {
        clock_ns += s->cost_ns;
        s->left--;
        s->handled++;
    } while (s->left > 0 && !dmn_loop_over(task->turns));
    if (s->left > 0) {
        dmn_loop_due(task);
    }
    if (s->leaves) {
        dmn_loop_leave(task);
    }
}

static void set_up(struct dmn_loop_turns *t)
{
    clock_ns = BASE_NS_PER_S;
    dmn_loop_turns_init(t);
    t->now_ns = now_ns;
}

static void come(struct dmn_loop_turns *t, struct sender *s, uid_t uid, uint64_t cost_ns)
{
    *s = (struct sender){.task.run = handle, .cost_ns = cost_ns};
    dmn_loop_join(t, &s->task, uid, 1);
}

static void say(struct sender *s, size_t messages)
{
    s->left += messages;
    dmn_loop_due(&s->task);
}

/* As the daemon's loop does. */
static void turn(struct dmn_loop_turns *t)
{
    uint64_t wait_ns = dmn_loop_may_wait(t);

    clock_ns += wait_ns == UINT64_MAX ? MS : wait_ns;
    dmn_loop_turn(t);
}

TEST(nobody_has_anything)
{
    struct dmn_loop_turns t;
    struct sender s;

    set_up(&t);
    T_EQ(dmn_loop_may_wait(&t), UINT64_MAX);
    dmn_loop_turn(&t);
    come(&t, &s, ALICE, US);
    T_EQ(dmn_loop_may_wait(&t), UINT64_MAX);
    T_TRUE(!dmn_loop_over(&t));
    dmn_loop_leave(&s.task);
    dmn_loop_leave(&s.task);
    dmn_loop_due(&s.task); /* it is no task any more */
    T_EQ(dmn_loop_may_wait(&t), UINT64_MAX);
    dmn_loop_turns_deinit(&t);
}

/* One user alone uses everything, and yet timers come between turns. */
TEST(a_turn_ends)
{
    struct dmn_loop_turns t;
    struct sender s[3];

    set_up(&t);
    for (size_t i = 0; i < 3; i++) {
        come(&t, &s[i], ALICE, 10 * US);
        say(&s[i], 1000);
    }
    for (int i = 0; i < 60; i++) {
        uint64_t before_ns = clock_ns;

        T_EQ(dmn_loop_may_wait(&t), 0);
        dmn_loop_turn(&t);
        T_TRUE(clock_ns > before_ns && clock_ns - before_ns <= MS);
    }
    while (dmn_loop_may_wait(&t) != UINT64_MAX) {
        turn(&t);
    }
    for (size_t i = 0; i < 3; i++) {
        T_EQ(s[i].handled, 1000);
        dmn_loop_leave(&s[i].task);
    }
    dmn_loop_turns_deinit(&t);
}

/* Messages of any cost, and one that alone exceeds a turn, on one connection or on many. */
TEST(users_share_the_loops_time)
{
    static const uint64_t costs[] = {US, 100 * US, 4 * MS};

    for (size_t k = 0; k < base_array_count(costs); k++) {
        struct dmn_loop_turns t;
        struct sender greedy[16], other;
        uint64_t of_greedy, of_other;

        set_up(&t);
        come(&t, &other, BOB, 20 * US);
        for (size_t i = 0; i < base_array_count(greedy); i++) {
            come(&t, &greedy[i], ALICE, costs[k]);
            say(&greedy[i], 1000000);
        }
        say(&other, 1000000);
        while (other.task.user->spent_ns < 400 * MS) {
            turn(&t);
        }
        of_greedy = greedy[0].task.user->spent_ns;
        of_other = other.task.user->spent_ns;
        T_TRUE(of_greedy <= of_other + 5 * MS && of_other <= of_greedy + 5 * MS);
        for (size_t i = 0; i < base_array_count(greedy); i++) {
            dmn_loop_leave(&greedy[i].task);
        }
        dmn_loop_leave(&other.task);
        dmn_loop_turns_deinit(&t);
    }
}

/* One message now and then, beside somebody who always has some: never behind more than a turn of
 * theirs, and most of the time the loop sleeps. */
TEST(who_asks_little_is_served_at_once)
{
    struct dmn_loop_turns t;
    struct sender greedy[8], polite;
    uint64_t began_ns, of_greedy;

    set_up(&t);
    come(&t, &polite, BOB, 20 * US);
    for (size_t i = 0; i < base_array_count(greedy); i++) {
        come(&t, &greedy[i], ALICE, 3 * US);
        say(&greedy[i], 10000000);
    }
    say(&polite, 1);
    turn(&t);
    began_ns = clock_ns;
    of_greedy = greedy[0].task.user->spent_ns;
    for (size_t i = 1; i <= 500; i++) {
        size_t before = polite.handled;
        uint64_t came_ns = clock_ns;

        say(&polite, 1);
        T_EQ(dmn_loop_may_wait(&t), 0); /* whoever rests */
        dmn_loop_turn(&t);
        T_EQ(polite.handled, before + 1);
        T_TRUE(clock_ns - came_ns <= MS);
        turn(&t);
    }
    of_greedy = greedy[0].task.user->spent_ns - of_greedy;
    T_TRUE(of_greedy > 0 && of_greedy * 2 < clock_ns - began_ns);
    T_TRUE(greedy[0].task.user->put_off > 100);
    T_EQ(polite.task.user->put_off, 0);
    for (size_t i = 0; i < base_array_count(greedy); i++) {
        dmn_loop_leave(&greedy[i].task);
    }
    dmn_loop_leave(&polite.task);
    dmn_loop_turns_deinit(&t);
}

/* What is done beside tasks counts too, and so does what a user without any task costs. */
TEST(charges_count)
{
    struct dmn_loop_turns t;
    struct sender charged, other;
    struct dmn_loop_user *stranger;

    set_up(&t);
    come(&t, &charged, ALICE, 100 * US);
    come(&t, &other, BOB, 100 * US);
    clock_ns += 30 * MS;
    dmn_loop_charge(&t, charged.task.user, clock_ns - 30 * MS);
    T_EQ(charged.task.user->spent_ns, 30 * MS);
    say(&charged, 100000);
    say(&other, 100000);
    while (charged.handled == 0) {
        turn(&t);
    }
    T_TRUE(other.task.user->spent_ns >= 29 * MS);
    stranger = dmn_loop_user_of(&t, 4242);
    dmn_loop_charge(&t, stranger, clock_ns - US);
    T_TRUE(dmn_loop_user_of(&t, 4242) == stranger && stranger->spent_ns == US);
    dmn_loop_leave(&charged.task);
    dmn_loop_leave(&other.task);
    dmn_loop_turns_deinit(&t);
}

/* A task may leave while it waits and while it runs. Users who left are remembered for a while. */
TEST(tasks_leave)
{
    struct dmn_loop_turns t;
    struct sender s[2];
    size_t known = 0;
    struct dmn_loop_user *u;

    set_up(&t);
    come(&t, &s[0], ALICE, US);
    come(&t, &s[1], ALICE, US);
    say(&s[0], 5);
    say(&s[1], 1);
    s[1].leaves = true;
    dmn_loop_leave(&s[0].task);
    turn(&t);
    T_EQ(s[0].handled, 0);
    T_EQ(s[1].handled, 1);
    T_TRUE(s[1].task.turns == NULL);
    T_EQ(dmn_loop_may_wait(&t), UINT64_MAX);
    for (uid_t uid = 1; uid < 1000; uid++) {
        come(&t, &s[0], uid, US);
        dmn_loop_leave(&s[0].task);
    }
    LIST_FOREACH(u, &t.known, linked) {
        known++;
    }
    T_TRUE(known < 100);
    dmn_loop_turns_deinit(&t);
}

TEST_MAIN()
