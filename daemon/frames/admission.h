/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/admission.h - whose frame is next: fair among users, and among the streams of each
 *
 * A fair queue of users, and for each user a fair queue of its streams (fair_queue.h). A turn costs
 * what the frame took to compute (pl_frame.busy_ns), so one large frame counts as much as many
 * small ones, and one whose core another program took costs no more. A frame of a stream counts
 * 1 / (1 << priority), to its stream and to its user; to its user also 1 / (the user's own weight).
 * So no stream starves, whatever others send, and a user gains nothing by more connections or
 * streams.
 *
 * Each model has one for the frames that wait for its pipeline; preparing.c has one for images.
 * Pure logic: no sockets, no pipeline. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/service/fair_queue.h"

/* A user with streams here, or one that had, until its tag is past: a user who connects again does
 * not get a new share. */
struct dmn_share {
    LIST_ENTRY(dmn_share) linked; /* in the admission, which owns it */
    struct dmn_flow flow;         /* in the queue of users */
    struct dmn_fair_queue streams;
    uid_t uid;
    size_t stream_count;
    unsigned weight;
};

/* A stream's waiting frames. Embedded in the stream. */
struct dmn_queue {
    struct dmn_flow flow;    /* in share->streams */
    struct dmn_share *share; /* borrowed from the admission that the stream joined; NULL: none */
    unsigned weight;         /* 1 << priority */
    uint64_t cost_ns;        /* of a frame, moving average; 0: not known */
};
#define DMN_QUEUE_NULL ((struct dmn_queue){.weight = 1})

struct dmn_admission {
    struct dmn_fair_queue users;
    LIST_HEAD(, dmn_share) shares; /* owned, but for `spare` */
    struct dmn_share spare;        /* of streams whose user found no memory */
    size_t waiting;                /* sum over all streams */
    uint64_t cost_ns;              /* of a frame of any stream, moving average; 0: not known */
};

/** dmn_admission_init() - nobody is here. */
void dmn_admission_init(struct dmn_admission *a);
/** dmn_admission_deinit() - frees the shares; no stream may be left. */
void dmn_admission_deinit(struct dmn_admission *a);

/** dmn_queue_init() - @priority: 0..3. */
void dmn_queue_init(struct dmn_queue *q, unsigned priority);
/** dmn_queue_join() - @q is a stream of user @uid, who has @weight (1..1000) beside other users.
 * The newest weight of a user counts. Without memory it shares with others who have none. */
void dmn_queue_join(struct dmn_admission *a, struct dmn_queue *q, uid_t uid, unsigned weight);
/** dmn_queue_leave() - before its stream ends or joins another; nothing waits. Takes a queue that
 * joined none. */
void dmn_queue_leave(struct dmn_queue *q);

/** dmn_admission_others() - Return: another user than that of @q has a stream here. */
bool dmn_admission_others(const struct dmn_admission *a, const struct dmn_queue *q);

/** dmn_admission_add() - one more frame of @q waits. */
void dmn_admission_add(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_drop() - removes one waiting frame of @q. */
void dmn_admission_drop(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_next() - Return: the queue whose oldest frame is next; NULL: nothing waits.
 * Changes nothing. */
struct dmn_queue *dmn_admission_next(const struct dmn_admission *a);
/** dmn_admission_taken() - one frame of @q, from dmn_admission_next(), has its turn. Return: the
 * cost in ns that it was expected to have, for dmn_admission_measured(). */
uint64_t dmn_admission_taken(struct dmn_admission *a, struct dmn_queue *q);
/** dmn_admission_measured() - a frame of @q took @cost_ns instead of @expected_ns. */
void dmn_admission_measured(struct dmn_admission *a, struct dmn_queue *q, uint64_t expected_ns,
                            uint64_t cost_ns);
/** dmn_admission_correct() - @q used up @more_ns of its share beside its turns. */
void dmn_admission_correct(struct dmn_admission *a, struct dmn_queue *q, int64_t more_ns);

/** dmn_admission_has_turn() - Return: @q, in which frames wait, has not had its share yet, so a
 * frame that would be refused for lack of room may wait for the next place instead. */
bool dmn_admission_has_turn(const struct dmn_admission *a, const struct dmn_queue *q);
/** dmn_admission_ahead() - Return: waiting frames that go before one that joins @q now, of which
 * @own are in @q. */
size_t dmn_admission_ahead(const struct dmn_admission *a, const struct dmn_queue *q, size_t own);

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
