/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/worker_time.h - for how long another thread was kept from its core
 *
 * The kernel counts for how long a thread was ready to run and another task had its core
 * (schedstat of proc(5)), but enters a wait only when it is over. So a wait that began before the
 * thread was watched would count in full; what the thread did not run bounds it. A thread that
 * sleeps waits for nothing.
 *
 * Where the kernel does not count, nothing is known, and nothing was lost.
 */
#pragma once

#include <stdint.h>
#include <time.h>

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
