/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/fence.h - memory fences
 *
 * ThreadSanitizer does not model fences, and GCC warns at each one. None of ours publishes data
 * (release and acquire or relaxed atomics do), so the warning is disabled here, once.
 */
#pragma once

#include <stdatomic.h>

#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
#endif
static inline void pl_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}
static inline void pl_fence_release(void)
{
    atomic_thread_fence(memory_order_release);
}
static inline void pl_fence_acquire(void)
{
    atomic_thread_fence(memory_order_acquire);
}
#pragma GCC diagnostic pop
