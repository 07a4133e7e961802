/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/interleavings/memory_model.h - what an atomic load may read, and which accesses race
 *
 * Every atomic object has its stores in the order in which they were made. Every thread has a view:
 * for each object the oldest store that it may still read, and for each thread the part of its life
 * that happened before now. A release store, or a store after a release fence, carries its thread's
 * view; an acquire load that reads it, or an acquire fence after the load, joins it. A sequentially
 * consistent fence joins its view with that of all such fences before. A read-modify-write reads
 * the newest store and hands on what that one carried (the release sequence). After Kang et al., A
 * promising semantics for relaxed-memory concurrency, POPL 2017, without its promises.
 *
 * What is left out, so that a fault of that kind is not found: loads that are done before an
 * earlier load or after a later store of the same thread (load buffering), and stores to one object
 * that others see in another order than they were made in.
 *
 * A plain access races with another thread's to the same four bytes if one writes and neither
 * happened before the other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** mm_reset() - forgets all objects and threads. */
void mm_reset(void);
/** mm_forget() - the memory is freed. */
void mm_forget(const void *p, size_t bytes);
/** mm_plain() - a plain access; fails the run if it races. */
void mm_plain(const void *p, size_t bytes, bool write);

/* The objects have @bytes 1, 2, 4 or 8; @order is a memory_order. Memory always has the newest
 * value. */
uint64_t mm_load(const void *p, size_t bytes, int order);
void mm_store(void *p, size_t bytes, uint64_t value, int order);
/** mm_newest() - Return: what a read-modify-write reads; mm_store_after() - its store. */
uint64_t mm_newest(const void *p, size_t bytes, int order);
void mm_store_after(void *p, size_t bytes, uint64_t value, int order);
void mm_fence(int order);

/** mm_release_all(), mm_acquire_of() - what a thread did until it ended, or made another. */
void mm_release_all(void);
void mm_acquire_of(size_t thread);
/** mm_start() - the new @thread begins with the view of the one that makes it. */
void mm_start(size_t thread);

/** mm_publish(), mm_receive() - the kernel's own objects, a semaphore say: release and acquire. */
void mm_publish(const void *on);
void mm_receive(const void *on);
