/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/workers.h - what libuv takes when it needs it, and aborts without: taken at the start */
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

/**
 * dmn_watchers_reserve() - makes room in @loop for all descriptors that the process may open
 *
 * At most 16384 of them, 128 KiB. @poll: in use until the loop has run. Threads: the loop thread,
 * once. Return: 0, -errno.
 */
int dmn_watchers_reserve(uv_loop_t *loop, uv_poll_t *poll);
