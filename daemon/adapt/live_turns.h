/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt/live_turns.h - the plan that serves and another one take turns on live frames, and
 * the better one stays
 *
 * tuner/adapt/turns.h says whose turn it is and who wins. A window is a measurement as of a retune
 * (daemon/plans/trial.h), so what passes while one plan drains and the other one fills is left out.
 * Its figure is the time between departures if frames always waited in both windows of a pair, else
 * the slowest stage by its teams' clocks. A pair in which neither is known does not count, and if
 * windows stay without frames the turns end undecided: the previous plan stays.
 *
 * Meanwhile nothing is learned, saved or decided. Another plan (of a user, or of a search) ends the
 * turns. Models take turns one after the other, as each would disturb the other's.
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

/** dmn_turns_fn - @m: NULL: the model ends, or is not watched any more; free @ctx. */
typedef void dmn_turns_fn(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r);

/* Of which plans, and who is told how it ended. */
struct dmn_turns_request {
    const struct pl_plan *incumbent, *challenger; /* on the EPs of the pipeline; copied */
    bool returns; /* the challenger is the plan from before: the incumbent has to prove itself */
    dmn_turns_fn
        *over; /* called once, not from dmn_turns_begin(); m->adapt->turns is NULL by then */
    void *ctx;
};
/** dmn_turns_begin() - sets m->adapt->turns. The incumbent serves, or is being switched to. Return:
 * 0 or -ENOMEM. */
int dmn_turns_begin(struct dmn_model *m, const struct dmn_turns_request *q);
/** dmn_turns_call_off() - ends them soon, with the incumbent serving. Takes NULL. */
void dmn_turns_call_off(struct dmn_turns *t);
/** dmn_turns_any() - Return: plans of a model take turns. */
bool dmn_turns_any(const struct dmn_models *models);
