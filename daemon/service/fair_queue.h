/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/fair_queue.h - whose turn it is, when turns cost different amounts of time
 *
 * Start-time fair queueing (Goyal, Vin, Cheng, "Start-time Fair Queuing", SIGCOMM 1996). Each flow
 * has a start tag, in virtual time; the waiting flow with the least tag is next, and the first to
 * come among equals. A turn moves the flow's tag on by cost / weight. Virtual time is the tag of
 * the last turn; a flow that begins to wait starts there, so it saves up no turns. While two flows
 * wait, what they got differs from their shares by at most one turn of each.
 *
 * A cost is known only after the turn: the tag moves by an estimate, and is corrected later.
 *
 * Tags wrap around; they are compared by their difference. Pure logic; nothing allocates. The list
 * is sorted: a turn costs one step for each flow that stays in front.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in its owner; listed while waiting > 0. */
struct dmn_flow {
    TAILQ_ENTRY(dmn_flow) linked;
    size_t waiting;
    uint64_t start; /* tag of its next turn */
    uint64_t step;  /* how far the last turn moved it; 0: it had none */
};
#define DMN_FLOW_NULL ((struct dmn_flow){0})

struct dmn_fair_queue {
    TAILQ_HEAD(dmn_flow_list, dmn_flow) flows; /* by start */
    uint64_t now;                              /* virtual time */
};

#define DMN_FLOW_WEIGHT_MAX 8000u

/** dmn_fair_queue_init() - nobody waits. */
void dmn_fair_queue_init(struct dmn_fair_queue *q);
/** dmn_flow_add() - one more waits in @f. */
void dmn_flow_add(struct dmn_fair_queue *q, struct dmn_flow *f);
/** dmn_flow_drop() - one that waited in @f gives up; it had no turn. */
void dmn_flow_drop(struct dmn_fair_queue *q, struct dmn_flow *f);
/** dmn_flow_next() - Return: the flow whose turn it is; NULL: nobody waits. Changes nothing. */
static inline struct dmn_flow *dmn_flow_next(const struct dmn_fair_queue *q)
{
    return TAILQ_FIRST(&q->flows);
}
/** dmn_flow_taken() - @f, in which one waits, has its turn. @cost_ns: expected; @weight: 1 to
 * DMN_FLOW_WEIGHT_MAX. */
void dmn_flow_taken(struct dmn_fair_queue *q, struct dmn_flow *f, uint64_t cost_ns,
                    unsigned weight);
/** dmn_flow_correct() - a turn cost @more_ns more than expected, or less if negative. */
void dmn_flow_correct(struct dmn_fair_queue *q, struct dmn_flow *f, int64_t more_ns,
                      unsigned weight);
/** dmn_flow_charge() - @f used up @cost_ns beside its turns. */
void dmn_flow_charge(struct dmn_fair_queue *q, struct dmn_flow *f, uint64_t cost_ns,
                     unsigned weight);
/** dmn_flow_behind() - Return: @f had more turns than its share of late, so others go first. */
bool dmn_flow_behind(const struct dmn_fair_queue *q, const struct dmn_flow *f);
/** dmn_flow_others() - Return: whether any other flow waits. */
bool dmn_flow_others(const struct dmn_fair_queue *q, const struct dmn_flow *f);
/** dmn_flow_before() - Return: how many that wait in other flows go before one that joined @f now,
 * with @own others of @f in front of it. */
size_t dmn_flow_before(const struct dmn_fair_queue *q, const struct dmn_flow *f, size_t own);
