/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/loop_turns.h"

#include <assert.h>

#include "base/base.h"

#define TURN_NS (500 * BASE_NS_PER_US) /* what a finished frame or another socket waits */
#define PIECE_NS (250 * BASE_NS_PER_US)
#define RESTS 2
#define TOOK_MOST_NS (10 * BASE_NS_PER_MS)
#define OF_LATE_NS (BASE_NS_PER_S / 4)
#define KNOWN_MAX 64u /* users without tasks */

static void user_init(struct dmn_loop_user *u, uid_t uid)
{
    *u = (struct dmn_loop_user){.uid = uid, .weight = 1};
    TAILQ_INIT(&u->due);
}

void dmn_loop_turns_init(struct dmn_loop_turns *t)
{
    *t = (struct dmn_loop_turns){.over_ns = UINT64_MAX, .now_ns = base_now_ns};
    dmn_fair_queue_init(&t->users);
    user_init(&t->spare, DMN_LOOP_NOBODY);
}

static void forget(struct dmn_loop_user *u)
{
    LIST_REMOVE(u, linked);
    free(u);
}

void dmn_loop_turns_deinit(struct dmn_loop_turns *t)
{
    while (!LIST_EMPTY(&t->known)) {
        assert(LIST_FIRST(&t->known)->tasks == 0);
        forget(LIST_FIRST(&t->known));
    }
}

/* Forgets the user who left longest ago, if there are many. */
static void make_room(struct dmn_loop_turns *t)
{
    struct dmn_loop_user *u, *oldest = NULL;
    size_t count = 0;

    LIST_FOREACH(u, &t->known, linked) {
        if (u->tasks == 0) {
            count++;
            oldest = !oldest || u->last_ns < oldest->last_ns ? u : oldest;
        }
    }
    if (count > KNOWN_MAX) {
        forget(oldest);
    }
}

struct dmn_loop_user *dmn_loop_user_of(struct dmn_loop_turns *t, uid_t uid)
{
    struct dmn_loop_user *u;

    LIST_FOREACH(u, &t->known, linked) {
        if (u->uid == uid) {
            return u;
        }
    }
    u = malloc(sizeof(*u));
    if (!u) {
        return &t->spare;
    }
    user_init(u, uid);
    make_room(t);
    LIST_INSERT_HEAD(&t->known, u, linked);
    return u;
}

void dmn_loop_join(struct dmn_loop_turns *t, struct dmn_loop_task *task, uid_t uid, unsigned weight)
{
    struct dmn_loop_user *u = dmn_loop_user_of(t, uid);

    u->weight = u == &t->spare ? 1 : weight;
    u->tasks++;
    task->turns = t;
    task->user = u;
    task->due = false;
}

/* Takes @task off the list of its user. */
static void take(struct dmn_loop_task *task)
{
    task->due = false;
    TAILQ_REMOVE(&task->user->due, task, linked);
}

void dmn_loop_leave(struct dmn_loop_task *task)
{
    struct dmn_loop_turns *t = base_take(task->turns);

    if (!t) {
        return;
    }
    if (task->due) {
        take(task);
        dmn_flow_drop(&t->users, &task->user->flow);
    }
    task->user->tasks--;
    task->user = NULL;
}

void dmn_loop_due(struct dmn_loop_task *task)
{
    if (task->turns && !task->due) {
        task->due = true;
        TAILQ_INSERT_TAIL(&task->user->due, task, linked);
        dmn_flow_add(&task->turns->users, &task->user->flow);
    }
}

static void charge(struct dmn_loop_turns *t, struct dmn_loop_user *u, uint64_t from_ns,
                   uint64_t to_ns)
{
    u->spent_ns += to_ns - from_ns;
    u->last_ns = to_ns;
    dmn_flow_charge(&t->users, &u->flow, to_ns - from_ns, u->weight);
}

void dmn_loop_charge(struct dmn_loop_turns *t, struct dmn_loop_user *u, uint64_t begun_ns)
{
    charge(t, u, begun_ns, t->now_ns());
}

static struct dmn_loop_user *first(const struct dmn_loop_turns *t)
{
    struct dmn_flow *f = dmn_flow_next(&t->users);

    return f ? base_container_of(f, struct dmn_loop_user, flow) : NULL;
}

/* Return: anybody else waits, or was served of late. */
static bool others(const struct dmn_loop_turns *t, const struct dmn_loop_user *than,
                   uint64_t now_ns)
{
    const struct dmn_loop_user *u;

    LIST_FOREACH(u, &t->known, linked) {
        if (u != than && u->uid != DMN_LOOP_NOBODY &&
            (u->flow.waiting > 0 || now_ns - u->last_ns < OF_LATE_NS)) {
            return true;
        }
    }
    return false;
}

/* A turn from @began_ns is over. Who had some of it and has more to do rests. */
static void put_off(struct dmn_loop_turns *t, uint64_t began_ns, uint64_t now_ns)
{
    uint64_t rest_ns = RESTS * base_min(now_ns - began_ns, TOOK_MOST_NS);
    struct dmn_loop_user *u;

    LIST_FOREACH(u, &t->known, linked) {
        if (u->flow.waiting > 0 && u->last_ns > began_ns) {
            u->put_off++;
            u->rests_ns = others(t, u, now_ns) ? now_ns + rest_ns : 0;
        }
    }
}

void dmn_loop_turn(struct dmn_loop_turns *t)
{
    struct dmn_loop_user *u = first(t);
    uint64_t began_ns = u ? t->now_ns() : 0, now_ns = began_ns;

    while (u && u->rests_ns <= now_ns && now_ns < began_ns + TURN_NS) {
        struct dmn_loop_task *task = TAILQ_FIRST(&u->due);
        uint64_t from_ns = now_ns;

        take(task);
        dmn_flow_taken(&t->users, &u->flow, 0, u->weight); /* it is charged when it is known */
        t->over_ns = from_ns + PIECE_NS;
        task->run(task);
        now_ns = t->now_ns();
        charge(t, u, from_ns, now_ns);
        u = first(t);
    }
    t->over_ns = UINT64_MAX;
    if (now_ns >= began_ns + TURN_NS) {
        put_off(t, began_ns, now_ns);
    }
}

uint64_t dmn_loop_may_wait(const struct dmn_loop_turns *t)
{
    const struct dmn_loop_user *u = first(t);
    uint64_t now_ns = u ? t->now_ns() : 0;

    return u ? u->rests_ns - base_min(u->rests_ns, now_ns) : UINT64_MAX;
}
