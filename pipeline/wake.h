/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/wake.h - how one consumer sleeps until any of its producers has something for it
 *
 * One word, shared by all rings of one consumer: 1 while the consumer sleeps or is about to. The
 * consumer announces its sleep, looks once more, then sleeps; a producer publishes, then looks
 * whether somebody sleeps. A full fence stands between the two steps on both sides, so at least one
 * of them sees the other (Dekker): no wakeup is lost, and a producer whose consumer is awake makes
 * no system call.
 *
 *     producer                          consumer
 *     publish (release store)           pl_wake_prepare()
 *     pl_wake_signal()                  look: something there? pl_wake_cancel()
 *                                       else pl_wake_wait(), look again
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* Writers: the consumer stores 1 and 0; any producer may exchange it to 0. It is a lock-free
 * hand-shake, so it has no single writer. */
struct pl_wake {
    _Atomic uint32_t sleeping;
};

/** pl_wake_signal() - wakes the consumer if it sleeps. Threads: any, after publishing. Never
 * blocks. */
void pl_wake_signal(struct pl_wake *w);

/** pl_wake_prepare(), pl_wake_cancel(), pl_wake_wait() - Threads: the consumer. wait returns after
 * a signal that came since prepare, or spuriously. */
void pl_wake_prepare(struct pl_wake *w);
void pl_wake_cancel(struct pl_wake *w);
void pl_wake_wait(struct pl_wake *w);
