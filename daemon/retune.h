/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/retune.h - a search over plans on live frames
 *
 * Any algorithm of tuner/search.h. The steps run on the loop thread and never block: measure the
 * plan that serves; where the algorithm reads the cost table, run the network for a moment on every
 * shape of team it knows nothing of (daemon/shapes.h); then ask, switch, measure, tell until the
 * search is done; the best plan serves. What gained less than a tenth, or seems to have lost, is
 * compared with the plan before once more, the two measured one after the other. ask() and tell()
 * run as queued work on the search's own copy of the problem. Frames of clients are served all the
 * while; synthetic ones run only while no client uses the model (daemon/feed.h).
 *
 * Whatever ends a retune, it leaves an event in the history, and "tuning" ends with its answer:
 * when the caller reads it, another one may begin. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/planner.h"

struct dmn_call;
struct dmn_model;
struct dmn_retune;

struct dmn_retune_request {
    const struct tun_algorithm *algorithm;
    struct dmn_goal goal;
    struct tun_options options; /* zeros: the algorithm's own */
    const char *cause;          /* of the history event; static */
    struct dmn_call *call;      /* answered with the event when it is over; NULL: nobody waits */
};

/** dmn_retune_begin() - @q: copied. The call is taken on success. Return: 0; -EBUSY: another one or
 * a change of plan is under way; -EINVAL: the goal asks for POWER without fps; -ENOMEM. */
int dmn_retune_begin(struct dmn_model *m, const struct dmn_retune_request *q);
/** dmn_retune_step() - goes on as far as it can; called when frames came out or time passed. */
void dmn_retune_step(struct dmn_model *m);
/** dmn_retune_collected() - a frame came out, a client's or a synthetic one; the caller gives it
 * back. */
void dmn_retune_collected(struct dmn_model *m, const struct pl_frame *f);
/** dmn_retune_cancel() - the plan before serves again; the call gets the event. Return: was there
 * anything to cancel. */
bool dmn_retune_cancel(struct dmn_model *m);
/** dmn_retune_abort() - as cancel, but the call is answered with an error that says @why. For a
 * model or daemon that goes away. */
void dmn_retune_abort(struct dmn_model *m, const char *why);
/** dmn_retune_free() - no more answers are waited for; a model that is destroyed calls it. */
void dmn_retune_free(struct dmn_model *m);
