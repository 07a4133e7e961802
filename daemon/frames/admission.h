/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/admission.h - which stream's frame enters a model's pipeline next, and which frames
 * cannot meet their deadline
 *
 * Every stream with waiting frames is in its model's list once. In its turn it admits as many
 * frames as its weight (1 << priority), then it goes to the end of the list. So no stream starves,
 * and a stream that sends more only waits longer itself. Pure logic: no sockets, no pipeline.
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A stream's waiting frames. Embedded in the stream; listed while waiting > 0. */
struct dmn_queue {
    TAILQ_ENTRY(dmn_queue) linked;
    size_t waiting;
    unsigned weight, turn; /* frames per turn; frames left in this turn */
};
#define DMN_QUEUE_NULL ((struct dmn_queue){.weight = 1})

struct dmn_admission {
    TAILQ_HEAD(, dmn_queue) turns; /* the first is next in turn */
    size_t waiting;                /* sum over all streams */
};

/** dmn_admission_init() - nothing waits. */
void dmn_admission_init(struct dmn_admission *a);
/** dmn_queue_init() - @priority: 0..3. */
void dmn_queue_init(struct dmn_queue *q, unsigned priority);
/** dmn_admission_add() - one more frame of @q waits. */
void dmn_admission_add(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_drop() - removes one waiting frame of @q. */
void dmn_admission_drop(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_next() - Return: the queue whose oldest frame is next; NULL: nothing waits.
 * Changes nothing. */
struct dmn_queue *dmn_admission_next(const struct dmn_admission *a);
/** dmn_admission_taken() - one frame of @q, from dmn_admission_next(), was admitted. */
void dmn_admission_taken(struct dmn_admission *a, struct dmn_queue *q);

/**
 * dmn_admission_misses_deadline() - will a frame that arrives now surely miss its deadline
 *
 * @deadline_ns: 0: none     @ahead: frames that are computed before it, in flight or waiting
 * @period_ns: time between two answers of a busy pipeline; 0: not known yet
 * @latency_ns: of a frame in an otherwise empty pipeline; 0: not known yet
 *
 * If no frame is ahead, only a deadline that has passed counts, so that a wrong estimate corrects
 * itself. Return: true if now + ahead * period + latency is after the deadline.
 */
bool dmn_admission_misses_deadline(uint64_t deadline_ns, uint64_t now_ns, size_t ahead,
                                   uint64_t period_ns, uint64_t latency_ns);
