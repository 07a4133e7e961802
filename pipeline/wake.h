/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/wake.h - lets one consumer sleep until one of its producers has work for it
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
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Writers: the consumer stores 1 and 0; any producer may exchange it to 0. A lock-free handshake
 * needs both writers. */
struct pl_wake {
    _Atomic uint32_t sleeping;
};

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
