/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/admission.h - whose frame goes into a model's pipeline next, and which are not worth it
 *
 * Every stream with waiting frames stands in its model's ring once. A turn admits as many of its
 * frames as its weight (1 << priority), then the next stream has its turn: none starves, and a
 * stream that sends more only waits longer itself. Pure logic: no sockets, no pipeline. Threads:
 * the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A stream's waiting frames. Embedded in the stream; listed while waiting > 0. */
struct dmn_queue {
    struct dmn_queue *next, *prev;
    size_t waiting;
    unsigned weight, turn; /* frames per turn; left of this one */
};
#define DMN_QUEUE_NULL ((struct dmn_queue){.weight = 1})

struct dmn_admission {
    struct dmn_queue *head; /* whose turn it is; NULL: nobody waits */
    size_t waiting;         /* over all streams */
};

/** dmn_queue_init() - @priority: 0..3. */
void dmn_queue_init(struct dmn_queue *q, unsigned priority);
/** dmn_admission_add() - one more frame of @q waits. */
void dmn_admission_add(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_drop() - one waiting frame of @q is no longer wanted. */
void dmn_admission_drop(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_next() - whose oldest waiting frame is next; NULL: nobody's. Changes nothing. */
struct dmn_queue *dmn_admission_next(const struct dmn_admission *a);
/** dmn_admission_taken() - the frame of the queue that dmn_admission_next() named was admitted. */
void dmn_admission_taken(struct dmn_admission *a, struct dmn_queue *q);

/**
 * dmn_admission_hopeless() - will a frame that arrives now miss its deadline even if all goes well
 * @ahead: frames that are computed before it, in flight or waiting; @period_ns: time between two
 * answers of a busy pipeline; @latency_ns: an otherwise empty pipeline's; 0: not known yet. An
 * empty pipeline always takes the frame, so that a wrong estimate corrects itself.
 */
bool dmn_admission_hopeless(uint64_t deadline_ns, uint64_t now_ns, size_t ahead, uint64_t period_ns,
                            uint64_t latency_ns);
