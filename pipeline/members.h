/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/members.h - the threads of one team: a leader and its pool's workers, pinned one to a
 * core
 *
 * The leader makes the thread pool and is a member of it: pthreadpool runs a share of the work on
 * the calling thread. To reach every member, the leader starts one work item per member; the items
 * wait for each other, so that every thread takes exactly one.
 */
#pragma once

#include <pthread.h>
#include <pthreadpool.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/** pl_thread_create - pthread_create(), or a test's replacement that can fail. Set it only before
 * any pipeline exists. */
typedef int (*pl_thread_create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
extern pl_thread_create_fn pl_thread_create;

/* ---- for how long another thread was kept from its core ----
 *
 * The kernel counts for how long a thread was ready to run and another task had its core
 * (schedstat of proc(5)), but enters a wait only when it is over. So a wait that began before the
 * thread was watched would count in full; what the thread did not run bounds it. A thread that
 * sleeps waits for nothing.
 *
 * Where the kernel does not count, nothing is known, and nothing was lost.
 */

struct pl_worker_time {
    int fd;                     /* owned; -1: nothing is known */
    clockid_t clock;            /* of its CPU time */
    uint64_t ran_ns, waited_ns; /* until pl_worker_time_look() */
};

/** pl_worker_time_init() - watches the calling thread. Blocks for a file of proc(5). */
void pl_worker_time_init(struct pl_worker_time *w);
void pl_worker_time_deinit(struct pl_worker_time *w);

/** pl_worker_time_look() - begins an interval. Takes about a microsecond. Threads: one at a time,
 * while the thread lives, as below. */
void pl_worker_time_look(struct pl_worker_time *w);

/** pl_worker_time_lost_ns() - Return: of the @ns since pl_worker_time_look(), for how long the
 * thread waited for its core. */
uint64_t pl_worker_time_lost_ns(const struct pl_worker_time *w, uint64_t ns);

/* ---- the members ---- */

struct pl_members {
    pthreadpool_t pool; /* owned, NULL for width 1 */
    size_t width;
    struct pl_worker_time *workers; /* owned; width - 1 of them, NULL for width 1 */
    uint64_t looked_ns;             /* pl_members_look() */
    bool pinned;                    /* every member is pinned to its core */
};
#define PL_MEMBERS_NULL                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

/**
 * pl_members_init() - makes the calling thread the leader of a team
 * @cpus: @width kernel CPU numbers, all different; NULL: no member is pinned. @name: thread name,
 * cut to 15 bytes
 * If a member cannot be pinned, it keeps the leader's old affinity, and pinned is false. Threads:
 * the leader. Return: 0, -EAGAIN (no threads), -ENOMEM.
 */
int pl_members_init(struct pl_members *m, const uint16_t *cpus, size_t width, const char *name);
/** pl_members_deinit() - stops and joins the workers. Threads: the leader. */
void pl_members_deinit(struct pl_members *m);

/** pl_members_rest() - lets the workers sleep instead of spinning. Threads: the leader, before it
 * sleeps itself. */
void pl_members_rest(struct pl_members *m);

/** pl_members_each() - runs fn(arg, i) once on every member, all at the same time. Threads: the
 * leader. */
void pl_members_each(struct pl_members *m, void (*fn)(void *arg, size_t i), void *arg);

/* For how long workers waited for their cores. */
struct pl_members_lost {
    uint64_t most_ns; /* one of them */
    uint64_t sum_ns;  /* all, one after the other */
};

/** pl_members_look() - begins an interval, @m->looked_ns. Threads: the leader, as below. */
void pl_members_look(struct pl_members *m);
/** pl_members_lost() - Return: what the workers lost since pl_members_look(); 0: nothing, or
 * unknown. */
struct pl_members_lost pl_members_lost(const struct pl_members *m);

/** pl_thread_start() - starts a thread with all signals blocked. Return: 0, -EAGAIN, -ENOMEM. */
int pl_thread_start(pthread_t *ret, void *(*fn)(void *), void *arg);
