/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/fence.h - memory fences
 *
 * ThreadSanitizer does not model fences and GCC says so at each; none of ours carries data (that
 * goes by release and acquire or by relaxed atomics), so the warning is silenced here once.
 */
#pragma once

#include <stdatomic.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wtsan"
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
