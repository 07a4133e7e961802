/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/ring.h - hands pointers from thread to thread: a ring from one producer to one consumer,
 * and how a consumer sleeps until one of its producers has work for it
 *
 * Two free-running 32-bit indices, masked by a power of two; tail - head is the number of items,
 * also when the indices wrap. They start just before the wrap, so that every run crosses it. Each
 * side writes its own index, on its own cache line. It keeps a copy of the other side's index and
 * reads the other cache line only if the copy says full (empty).
 *
 * Memory order: the producer writes an item's slot, and all that the item points to, before it
 * stores tail with release; the consumer loads tail with acquire before it reads the slot. The
 * consumer stores head with release after it has read the slot; the producer loads head with
 * acquire before it writes the slot again. closed is stored with release after the last push: a
 * consumer that sees it (acquire) and then finds the ring empty has received everything.
 *
 * The ring wakes no thread: pl_wake_signal() does. The thread that makes the ring starts the
 * producer and the consumer after it; that publishes the ring to them.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"

struct pl_ring {
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint32_t tail; /* writer: producer */
    _Atomic bool closed;                                   /* writer: producer */
    uint32_t head_seen;                                    /* producer's own */
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint32_t head; /* writer: consumer */
    uint32_t tail_seen;                                    /* consumer's own */
    _Alignas(BASE_CACHE_LINE_BYTES) void **slots;          /* owned; neither pointer ever changes */
    uint32_t mask;
};

/** pl_ring_init() - makes a ring for at least @capacity items, 1..2^30. Return: 0, -EINVAL,
 * -ENOMEM. */
int pl_ring_init(struct pl_ring *r, size_t capacity);
/** pl_ring_deinit() - frees the slots; items still in the ring belong to the caller. Accepts a
 * zeroed ring.
 */
void pl_ring_deinit(struct pl_ring *r);

/** pl_ring_push() - appends an item. Threads: the producer. Return: false if the ring is full. */
static inline bool pl_ring_push(struct pl_ring *r, void *item)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

    if (tail - r->head_seen > r->mask) {
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (tail - r->head_seen > r->mask) {
            return false;
        }
    }
    r->slots[tail & r->mask] = item;
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    return true;
}

/** pl_ring_close() - declares that no push will follow. Threads: the producer. */
static inline void pl_ring_close(struct pl_ring *r)
{
    atomic_store_explicit(&r->closed, true, memory_order_release);
}

/** pl_ring_peek() - Return: the oldest item, which stays in the ring, or NULL. Threads: the
 * consumer. */
static inline void *pl_ring_peek(struct pl_ring *r)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

    if (head == r->tail_seen) {
        r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
        if (head == r->tail_seen) {
            return NULL;
        }
    }
    return r->slots[head & r->mask];
}

/** pl_ring_pop() - removes the oldest item. Return: that item, or NULL. Threads: the consumer. */
static inline void *pl_ring_pop(struct pl_ring *r)
{
    void *item = pl_ring_peek(r);

    if (item != NULL) {
        uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

        atomic_store_explicit(&r->head, head + 1, memory_order_release);
    }
    return item;
}

/** pl_ring_dry() - Return: whether the ring is closed and empty for good. Threads: the consumer. */
static inline bool pl_ring_dry(struct pl_ring *r)
{
    return atomic_load_explicit(&r->closed, memory_order_acquire) && pl_ring_peek(r) == NULL;
}

/** pl_ring_count() - Return: the number of items at some moment during the call. Threads: any. */
static inline size_t pl_ring_count(const struct pl_ring *r)
{
    uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

    /* head was read first: the difference can be too large, never negative */
    return base_min(tail - head, r->mask + 1);
}

/*
 * ---- waiting ----
 *
 * One futex word, shared by all rings of one consumer: 1 while the consumer sleeps or is about to.
 * The consumer sets the word, checks its rings once more, then sleeps; a producer publishes, then
 * checks the word. Both sides have a full fence between the two steps, so at least one sees the
 * other (Dekker): no wakeup is lost, and a producer makes no system call while its consumer is
 * awake.
 *
 *     producer                          consumer
 *     publish (release store)           pl_wake_prepare()
 *     pl_wake_signal()                  look: something there? pl_wake_cancel()
 *                                       else pl_wake_wait(), look again
 */

/* Writers: the consumer stores 1 and 0; any producer may exchange it to 0. A lock-free handshake
 * needs both writers. */
struct pl_wake {
    _Atomic uint32_t sleeping;
};

/** pl_futex() - futex(2) on a word of this process; @op: FUTEX_WAIT, for @most at most if it is not
 * NULL, or FUTEX_WAKE. Errors are states here: EAGAIN (the word changed first), EINTR and ETIMEDOUT
 * all mean "look again". */
void pl_futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *most);

/** pl_wake_signal() - wakes the consumer if it sleeps. Threads: any, after publishing. Never
 * blocks. */
void pl_wake_signal(struct pl_wake *w);

/** pl_wake_prepare(), pl_wake_cancel(), pl_wake_wait() - Threads: the consumer. pl_wake_wait()
 * returns after a signal that came since pl_wake_prepare(), or spuriously.
 * pl_wake_wait_ns() - the same, for @most_ns at most */
void pl_wake_prepare(struct pl_wake *w);
void pl_wake_cancel(struct pl_wake *w);
void pl_wake_wait(struct pl_wake *w);
void pl_wake_wait_ns(struct pl_wake *w, uint64_t most_ns);
