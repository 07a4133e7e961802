/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/loop_turns.h - whose messages the loop handles next, and for how long
 *
 * All that clients send is handled in tasks: one for each connection of either socket, and one for
 * each listening socket. A socket that has something only makes its task due. Once in a turn of the
 * loop dmn_loop_turn() runs tasks that are due, by a fair queue of users (fair_queue.h), whose cost
 * is the time that a task took. A task runs for a piece of time (PIECE_NS), and a turn ends after
 * TURN_NS; what is left waits for later turns. So a user who makes the loop work, by whatever
 * messages, pays with the loop's time, and whoever asked for little of it goes first. Timers,
 * among them the watchdog's, and what teams have computed come between two turns.
 *
 * A loop that is always at work finds its core taken on a busy machine, like any thread that
 * computes, while one that sleeps runs soon after it is woken. So users who had some of a turn and
 * have more to do rest for RESTS times as long as it took, if another user waits or was served of
 * late. Whoever is before them in the queue is served meanwhile, and nobody else.
 *
 * Only one call of a task may exceed its piece, so such a call should be short.
 *
 * Time is the monotonic clock: what takes the core from the loop meanwhile counts too, and hits
 * users in proportion to what they use.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/service/fair_queue.h"

/* A user with tasks, or one that had: the newest of these are remembered for who asks. */
struct dmn_loop_user {
    LIST_ENTRY(dmn_loop_user) linked; /* in the turns, which own it */
    struct dmn_flow flow;             /* in the queue of users; waiting: its tasks that are due */
    TAILQ_HEAD(dmn_loop_tasks, dmn_loop_task) due;
    uid_t uid;
    unsigned weight;
    size_t tasks;
    uint64_t spent_ns; /* that the loop worked for it */
    uint64_t put_off;  /* turns that ended while a task of it was due */
    uint64_t last_ns;  /* it was charged last */
    uint64_t rests_ns; /* until then */
};

/* Embedded in a connection or a listener. */
struct dmn_loop_task {
    TAILQ_ENTRY(dmn_loop_task) linked; /* while due */
    struct dmn_loop_turns *turns;      /* borrowed; NULL: it has not joined, or has left */
    struct dmn_loop_user *user;        /* borrowed from turns */
    bool due;
    /* Set by the owner. Works until dmn_loop_over(), and says dmn_loop_due() if something is left.
     * It may leave; its memory stays until the next turn of the loop. */
    void (*run)(struct dmn_loop_task *task);
};

struct dmn_loop_turns {
    struct dmn_fair_queue users;
    LIST_HEAD(, dmn_loop_user) known; /* owned, but for `spare` */
    struct dmn_loop_user spare;       /* of tasks whose user found no memory */
    uint64_t over_ns;                 /* when the present piece is over; UINT64_MAX: none runs */
    uint64_t (*now_ns)(void);         /* base_now_ns(), but in tests */
};

/* The user of listeners: connections come from anybody. Each is charged to its own user, too. */
#define DMN_LOOP_NOBODY ((uid_t)-1)

/** dmn_loop_turns_init() - nobody is here. */
void dmn_loop_turns_init(struct dmn_loop_turns *t);
/** dmn_loop_turns_deinit() - frees the users; every task has left. Takes a zeroed one. */
void dmn_loop_turns_deinit(struct dmn_loop_turns *t);

/** dmn_loop_join() - @task is one of user @uid, who has @weight (1..1000) beside other users; the
 * newest weight of a user counts. Without memory it shares with others who have none. */
void dmn_loop_join(struct dmn_loop_turns *t, struct dmn_loop_task *task, uid_t uid,
                   unsigned weight);
/** dmn_loop_leave() - before its owner goes. A task that has not joined, or has left, may leave. */
void dmn_loop_leave(struct dmn_loop_task *task);
/** dmn_loop_due() - @task has something to do. */
void dmn_loop_due(struct dmn_loop_task *task);
/** dmn_loop_turn() - runs tasks that are due, within the limits above. */
void dmn_loop_turn(struct dmn_loop_turns *t);
/** dmn_loop_may_wait() - Return: for how many ns the loop may wait, for all that is due; 0: not at
 * all; UINT64_MAX: nothing is due. */
uint64_t dmn_loop_may_wait(const struct dmn_loop_turns *t);
/** dmn_loop_user_of() - Return: user @uid, added if it is new, borrowed until the next one comes;
 * `spare` without memory. */
struct dmn_loop_user *dmn_loop_user_of(struct dmn_loop_turns *t, uid_t uid);
/** dmn_loop_charge() - the loop worked for @u beside its tasks. @begun_ns: since then. */
void dmn_loop_charge(struct dmn_loop_turns *t, struct dmn_loop_user *u, uint64_t begun_ns);

/** dmn_loop_over() - Return: the task that runs has used up its piece. Outside of
 * dmn_loop_turn(): false. */
static inline bool dmn_loop_over(const struct dmn_loop_turns *t)
{
    return t->over_ns != UINT64_MAX && t->now_ns() >= t->over_ns;
}
