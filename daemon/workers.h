/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/workers.h - the threads that the loop's queued work runs on */
#pragma once

#include <uv.h>

/**
 * dmn_workers_start() - makes libuv's work threads, which live until the process ends
 *
 * Without it, libuv would make them at the first queued work, and abort if it cannot. @first: some
 * work that does nothing, in use until the loop has run. Logs why it failed. Threads: the loop
 * thread, once. Return: 0, -EAGAIN, -ENOMEM.
 */
int dmn_workers_start(uv_loop_t *loop, uv_work_t *first);
