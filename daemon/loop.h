/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/loop.h - what the loop needs beside libuv: room for its watchers, and a way to be woken by
 * which it does not wait for the thread that wakes it
 */
#pragma once

#include <uv.h>

/** dmn_loop_reserve() - libuv aborts where its array of watchers, by descriptor, cannot grow. It
 * grows at the first use of a large one, and stays: makes room for all that the process may open,
 * at most 16384, 128 KiB. @poll: in use until the loop has run. Return: 0, -errno. */
int dmn_loop_reserve(uv_loop_t *loop, uv_poll_t *poll);

/* Wakes the loop from the threads of the teams.
 *
 * As uv_async_t, but the loop never waits for the thread that wakes it. uv_async_send() announces
 * itself before it writes, and the loop spins until that thread has finished. A team may lose its
 * core in between, to a program of higher priority for as long as that likes; it would take the
 * loop along. Here a thread only writes to an eventfd, and no thread depends on another's progress.
 */
struct dmn_wake {
    uv_poll_t poll;
    int fd; /* eventfd, owned; not blocking */
    void (*woken)(void *arg);
    void *arg; /* borrowed */
};

/** dmn_wake_init() - @woken: called in the loop thread once or more after each dmn_wake_send(), for
 * several of them maybe once; what a sender wrote before is seen there. Return: 0, -errno. */
int dmn_wake_init(struct dmn_wake *w, uv_loop_t *loop, void (*woken)(void *arg), void *arg);
/** dmn_wake_send() - any thread; never waits; one system call. */
void dmn_wake_send(struct dmn_wake *w);
/** dmn_wake_close() - after the last dmn_wake_send(); takes a zeroed one, and one that
 * dmn_wake_init() failed on. @w has to stay until the loop has run. */
void dmn_wake_close(struct dmn_wake *w);
