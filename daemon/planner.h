/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/planner.h - which plan a model starts with, and the measurement behind a retune
 *
 * The first plan cuts the units evenly by weight (or by what an earlier run measured). A retune
 * measures: while nobody uses the model, every execution place runs the whole network for a few
 * synthetic frames; under traffic the per-unit clocks of the present plan serve instead. The plan
 * that follows is run and compared with the one before, and the better one stays. Client frames are
 * served all the while. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"

struct dmn_call;
struct dmn_daemon;
struct dmn_model;
struct dmn_retune;

/* What units took: [ep][unit] in ns, negative where not measured. Owned by the model. */
struct dmn_costs {
    size_t eps, units;
    double *ns;
};
#define DMN_COSTS_NULL ((struct dmn_costs){0})
/** dmn_costs_init() - all unknown. Return: 0 or -ENOMEM. */
int dmn_costs_init(struct dmn_costs *c, size_t eps, size_t units);
void dmn_costs_deinit(struct dmn_costs *c);
static inline double *dmn_costs_at(const struct dmn_costs *c, size_t ep, size_t unit)
{
    return &c->ns[ep * c->units + unit];
}

/** dmn_planner_plan() - the best plan by costs, or by weights where nothing was measured. Return: 0
 * or -EINVAL. */
int dmn_planner_plan(const struct mdl_model *model, const struct dmn_costs *costs,
                     const struct pl_ep_set *eps, size_t stages_max, struct pl_plan *ret);
/** dmn_planner_expect() - what each stage of @plan should take for one frame, ns; 0: unknown. */
void dmn_planner_expect(const struct dmn_costs *costs, const struct pl_plan *plan,
                        double ret_ns[PL_STAGE_MAX]);

/** dmn_retune_begin() - @call: answered when the new plan serves. Return: 0; -EBUSY; -ENOMEM. */
int dmn_retune_begin(struct dmn_model *m, struct dmn_call *call);
/** dmn_retune_step() - goes on as far as it can; called when frames came out or time passed. */
void dmn_retune_step(struct dmn_model *m);
/** dmn_retune_collected() - a synthetic frame came out; the frame is given back by the caller. */
void dmn_retune_collected(struct dmn_model *m, const struct pl_frame *f);
/** dmn_retune_abort() - no more frames, no new plan; the call is answered with an error. */
void dmn_retune_abort(struct dmn_model *m, const char *why);
void dmn_retune_free(struct dmn_model *m);
