/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt/live_turns.h - compares two plans on live frames, in turns, and keeps the better one
 *
 * tuner/adapt/turns.h decides which plan serves next and which one wins. A turn is one window,
 * measured like a trial of a retune (daemon/plans/trial.h): frames that pass while one plan drains
 * and the other fills are left out.
 *
 * The figure of a window is the time between departures if frames were waiting throughout both
 * windows of a pair, else the time of the slowest stage by its teams' clocks. A pair for which
 * neither is known does not count. If no frames come, the turns end undecided, and the previous
 * plan stays.
 *
 * While plans take turns, nothing is learned, saved or decided for the model. A plan that a user or
 * a search sets ends the turns. One model at a time takes turns: two would disturb each other.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/pipeline.h"
#include "tuner/adapt/turns.h"

struct dmn_model;
struct dmn_models;
struct dmn_turns; /* adapter_private.h has the functions that end them and count frames */

struct dmn_turns_result {
    bool left; /* something else changed the plan, or it was called off: nothing is known */
    enum tun_verdict verdict; /* better: the challenger serves, else the incumbent */
    struct tun_turns_shown shown;
    struct pl_plan incumbent, challenger;
    uint64_t frames[2]; /* measured, of the incumbent and of the challenger */
    uint64_t failed;    /* frames that failed meanwhile */
};

/** dmn_turns_fn - @m: NULL: the model is unloaded or no longer watched; free @ctx. */
typedef void dmn_turns_fn(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r);

/* Which plans, and who is told of the end. */
struct dmn_turns_request {
    const struct pl_plan *incumbent, *challenger; /* on the EPs of the pipeline; copied */
    bool returns;       /* the challenger is the previous plan: the incumbent has to prove itself */
    double expected_ns; /* time per frame of the challenger; 0: unknown */
    dmn_turns_fn
        *over; /* called once, not from dmn_turns_begin(); m->adapt->turns is NULL by then */
    void *ctx;
};
/** dmn_turns_begin() - sets m->adapt->turns. The incumbent serves, or is being switched to. Return:
 * 0 or -ENOMEM. */
int dmn_turns_begin(struct dmn_model *m, const struct dmn_turns_request *q);
/** dmn_turns_call_off() - ends them soon, with the incumbent serving. Takes NULL. */
void dmn_turns_call_off(struct dmn_turns *t);
/** dmn_turns_end() - ends them soon, with the incumbent serving: what made the challenger better is
 * over. */
void dmn_turns_end(struct dmn_turns *t);
/** dmn_turns_any() - Return: plans of a model take turns. */
bool dmn_turns_any(const struct dmn_models *models);
