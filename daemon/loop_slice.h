/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/loop_slice.h - the loop thread runs soon after it is woken, though teams compute on every
 * core
 *
 * Linux's fair scheduler lets a thread that computes finish its slice, some milliseconds, before a
 * thread of the same priority that was woken. The loop thread needs a core for tens of microseconds
 * at a time, and an answer or a new frame waits for it. With a shorter slice than the running
 * thread's it is preferred (Linux 6.12; older ones know no slices). Its share of the core stays the
 * same, so this needs no right.
 */
#pragma once

#include <stdbool.h>

/** dmn_loop_slice_set() - gives the calling thread the shortest slice. Threads that it creates
 * later have the usual one. Nothing changes for a real-time policy, or at a negative nice level,
 * which those threads would not inherit. Return: whether the kernel took it; older kernels take it
 * without effect. */
bool dmn_loop_slice_set(void);
