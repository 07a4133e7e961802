/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/common/ledger.h - the head's account of one stream's frames over boards
 *
 * Every input is kept until its answer is out. A frame keeps its number for good; each time it is
 * sent, it is sent under an epoch and on a way. A way is a first board of plans, with a window of
 * frames that it takes unanswered (its credits); it keeps its number, and what it has in flight,
 * over epochs. An answer counts only if the frame still waits for just that epoch and way; all
 * others are late or doubled, and dropped. So whatever boards and links do, each frame is
 * released exactly once, in the order of admission.
 *
 * A plan change without loss: lnk_ledger_begin(). New frames go under the new epoch, frames in
 * flight are answered under theirs. A loss: lnk_ledger_void() for what went over it; those frames
 * are sent again.
 *
 * Pure: no clock, no I/O. All memory is allocated by lnk_ledger_new(). Threads: one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LNK_WAYS_MAX 16u     /* one for each board there may be */
#define LNK_LEDGER_MAX 4096u /* frames in one ledger */
#define LNK_ALL_WAYS UINT32_MAX

struct lnk_ledger;

/* A first board. */
struct lnk_way {
    uint32_t window; /* frames that may be unanswered; 0: none for now */
    double period;   /* how long it takes per frame, any unit; frames are dispatched by it */
};
/* A frame to send now. */
struct lnk_due {
    uint64_t frame;
    uint32_t epoch, way;
    uint32_t times;   /* how often it has been sent, with this one */
    uint64_t left_ns; /* until its deadline; 0: none */
    void *input;      /* of lnk_ledger_admit() */
};
/* A frame that is answered, in order. */
struct lnk_done {
    uint64_t frame;
    uint32_t status;      /* 0: answered; else the caller's number, see lnk_ledger_answer() */
    void *input, *answer; /* the caller's again; @answer is NULL if no board answered */
};
struct lnk_ledger_counts {
    uint64_t admitted, released, sent, resent, late, doubled, unknown, expired, cancelled;
    uint32_t waiting, in_flight, held; /* held: answered, but an earlier frame is not */
};

enum lnk_ledger_outcome {
    LNK_LEDGER_E_FULL = 1,    /* as many frames as @capacity are not yet released */
    LNK_LEDGER_E_LATE = 2,    /* the frame was sent again since, on another way or epoch */
    LNK_LEDGER_E_DOUBLED = 3, /* the frame is answered */
    LNK_LEDGER_E_UNKNOWN = 4, /* no such frame, or it was never sent */
    LNK_LEDGER_E_NOTHING = 5,
    LNK_LEDGER_E_SENT = 6, /* the frame is on its way */
};

/** lnk_ledger_new() - @capacity: frames, 1 to LNK_LEDGER_MAX. Return: 0, -EINVAL, -ENOMEM. */
int lnk_ledger_new(uint32_t capacity, struct lnk_ledger **ret);
/** lnk_ledger_free() - @l may be NULL; inputs and answers stay the caller's. Return: NULL. */
struct lnk_ledger *lnk_ledger_free(struct lnk_ledger *l);

/** lnk_ledger_begin() - a new epoch. @ways: at most LNK_WAYS_MAX; none: frames wait. Return: the
 * epoch's number, 1 or more. */
uint32_t lnk_ledger_begin(struct lnk_ledger *l, const struct lnk_way *ways, uint32_t count);
/** lnk_ledger_void() - nothing more comes from a way (or LNK_ALL_WAYS) under the epochs up to and
 * with @epoch: its unanswered frames wait to be sent again. If @epoch is the present one, the way's
 * window is 0 from now on. Return: how many frames. */
uint32_t lnk_ledger_void(struct lnk_ledger *l, uint32_t epoch, uint32_t way);
/** lnk_ledger_unanswered() - Return: how many frames were sent under epochs up to and with @epoch,
 * and neither answered nor voided since. */
uint32_t lnk_ledger_unanswered(const struct lnk_ledger *l, uint32_t epoch);
/** lnk_ledger_window() - new credits. Ignores epochs other than the present one. */
void lnk_ledger_window(struct lnk_ledger *l, uint32_t epoch, uint32_t way, uint32_t window);
/** lnk_ledger_refuse() - answers all frames that wait to be sent with @status: no plan serves them.
 * Return: how many. */
uint32_t lnk_ledger_refuse(struct lnk_ledger *l, uint32_t status);

/** lnk_ledger_admit() - takes a frame. @deadline_ns: of the caller's clock; 0: none. Return: 0;
 * LNK_LEDGER_E_FULL. */
int lnk_ledger_admit(struct lnk_ledger *l, void *input, uint64_t deadline_ns, uint64_t *ret_frame);
/**
 * lnk_ledger_next() - the next frame to send
 *
 * Frames are taken in order. Each goes to the way that is expected to finish it first; while that
 * one has no room the frame waits for it, and a later frame may go elsewhere. So a slow way has
 * just the frames that it answers before they hold up others: answers go out in order.
 *
 * The frame counts as sent; after a failed send call lnk_ledger_unsend(). Frames whose deadline is
 * over are answered with @expired instead. Return: 0; LNK_LEDGER_E_NOTHING: no frame, or no room.
 */
int lnk_ledger_next(struct lnk_ledger *l, uint64_t now_ns, uint32_t expired, struct lnk_due *ret);
/** lnk_ledger_unsend() - the frame of lnk_ledger_next() was not sent, or not taken: it waits again.
 * Ignored if it no longer waits for that epoch and way. */
void lnk_ledger_unsend(struct lnk_ledger *l, const struct lnk_due *due);
/** lnk_ledger_cancel() - nobody wants the frame any more: it is not sent (again), but answered with
 * @status. Return: 0; LNK_LEDGER_E_SENT: it is so only if it has to be sent again; _DOUBLED: it is
 * answered; _UNKNOWN. */
int lnk_ledger_cancel(struct lnk_ledger *l, uint64_t frame, uint32_t status);
/** lnk_ledger_answer() - an answer (@status 0) or a final error. @answer: kept until released, if 0
 * is returned; else the caller's. Return: 0; LNK_LEDGER_E_LATE, _DOUBLED, _UNKNOWN. */
int lnk_ledger_answer(struct lnk_ledger *l, uint64_t frame, uint32_t epoch, uint32_t way,
                      uint32_t status, void *answer);
/** lnk_ledger_release() - the next frame in order. Return: 0; LNK_LEDGER_E_NOTHING. */
int lnk_ledger_release(struct lnk_ledger *l, struct lnk_done *ret);
void lnk_ledger_counts(const struct lnk_ledger *l, struct lnk_ledger_counts *ret);
