/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/watchers.h - libuv's room for descriptors, without which it aborts: taken at the start */
#pragma once

#include <uv.h>

/**
 * dmn_watchers_reserve() - makes room in @loop for all descriptors that the process may open
 *
 * At most 16384 of them, 128 KiB. @poll: in use until the loop has run. Threads: the loop thread,
 * once. Return: 0, -errno.
 */
int dmn_watchers_reserve(uv_loop_t *loop, uv_poll_t *poll);
