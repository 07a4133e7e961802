/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/away.h - frames of one model on their way to other boards: a client of piped-link
 *
 * A stream of libpiped to piped-link's frames socket. It is opened on a work thread, because
 * libpiped waits there; everything else happens on the loop and never waits. Inputs are copied into
 * the stream's slots, outputs back.
 *
 * Each taken frame comes back once, by dmn_far_frame.done(): answered; or undone if piped-link
 * answered anything but a result, a passed deadline or the cancelling that was asked for, if it
 * stays away for RECONNECT_MS, or if the stream is no longer wanted.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/models/elsewhere.h"

struct dmn_away;

/** dmn_away_new() - for frames of @m of pixel format @pixfmt (0: tensors), by the socket of the
 * configuration. @at: of the frames it takes. @changed: it was opened, or it was lost:
 * dmn_away_ready(); NULL: nobody asks. All are borrowed. Return: owned; NULL: out of memory. */
struct dmn_away *dmn_away_new(struct dmn_model *m, unsigned pixfmt, struct dmn_elsewhere *at,
                              void (*changed)(void *ctx), void *ctx);
/** dmn_away_free() - frames in flight do not come back any more. Takes NULL. Return: NULL. */
struct dmn_away *dmn_away_free(struct dmn_away *a);

/** dmn_away_want() - opens the stream if it is not open, at most every RETRY_NS. Call it once a
 * second. */
void dmn_away_want(struct dmn_away *a, uint64_t now_ns);
/** dmn_away_close() - all frames come back before it returns, those without an answer undone. */
void dmn_away_close(struct dmn_away *a);
bool dmn_away_ready(const struct dmn_away *a);
/** dmn_away_why() - Return: why it could not be opened; "": it was, or nothing was tried. */
const char *dmn_away_why(const struct dmn_away *a);
/** dmn_away_depth() - Return: frames in flight that keep the boards busy; 0: it is not open. */
size_t dmn_away_depth(const struct dmn_away *a);
/* Frames since it was made: taken, of these back without an answer, and still away. */
struct dmn_away_counts {
    uint64_t taken, undone, in_flight;
};
struct dmn_away_counts dmn_away_counts(const struct dmn_away *a);

/* As in struct dmn_elsewhere. */
enum dmn_offer dmn_away_offer(struct dmn_away *a, struct dmn_far_frame *f);
void dmn_away_cancel(struct dmn_away *a, struct dmn_far_frame *f);
/** dmn_away_settle() - takes what came back without a message. Call it before the loop waits.
 * Return: it looked. */
bool dmn_away_settle(struct dmn_away *a);
