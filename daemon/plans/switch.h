/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/switch.h - the only way to change a plan, and how that is written down
 *
 * dmn_plan_switch() switches the pipeline and does what the request asks for: origin, expected
 * figures, log, history, saved state, and listeners. Nobody else calls pl_switch() on a model's
 * pipeline. Threads: the loop thread.
 */
#pragma once

#include "daemon/models/done.h"
#include "daemon/models/serving.h"
#include "daemon/plans/history.h"
#include "pipeline/pipeline.h"

struct dmn_plans;
struct dmn_model;
struct tun_algorithm;

enum dmn_switch_kind {
    DMN_SWITCH_LASTING, /* the plan is to stay: do everything */
    DMN_SWITCH_TRIAL,   /* the plan is to be measured: listeners are told, nothing is recorded */
    DMN_SWITCH_AHEAD,   /* dmn_plan_adopt() follows once the old plan has drained, and tells */
};

/* A request; all pointers are borrowed during the call. */
struct dmn_switch {
    const struct pl_plan *plan;
    enum dmn_switch_kind kind;
    /* for DMN_SWITCH_LASTING */
    struct dmn_origin origin;
    enum dmn_cause cause; /* NONE: the caller writes the history event */
    const char *detail;   /* of the history event */
    bool keep;            /* save it for this state of the machine */
    bool learn;           /* first learn from the clocks of the previous plan */
};

/** dmn_plan_switch() - Return: 0; -EBUSY: an earlier plan still drains, which pl_switching() tells
 * before; -errno of pl_switch(). */
int dmn_plan_switch(struct dmn_model *m, const struct dmn_switch *s);
/** dmn_plan_adopt() - makes the serving plan permanent, as @s (LASTING) says; writes no event. */
void dmn_plan_adopt(struct dmn_model *m, const struct dmn_switch *s);

/** dmn_plan_event() - adds an event of @m to the history, and counts it. @e: as for
 * dmn_history_add(), but for its model, which is set here. Return: as dmn_history_add(). */
struct dmn_history_event *dmn_plan_event(struct dmn_model *m, const struct dmn_history_event *e);
/** dmn_plan_event_measured() - as dmn_event_measured(), and counts the outcome if it is new. */
void dmn_plan_event_measured(struct dmn_model *m, struct dmn_history_event *e,
                             enum dmn_event_outcome outcome, double fps, uint64_t frames,
                             uint64_t lost);
/** dmn_plan_changing() - Return: a search or a switch is in progress, or somebody waits for one. */
bool dmn_plan_changing(const struct dmn_model *m);
/** dmn_plan_wait() - calls @done when the previous plan has drained, or with why it never will. */
void dmn_plan_wait(struct dmn_model *m, struct dmn_done done);

/* Events of this room; each function may be NULL. */
struct dmn_plans_listener {
    void *ctx;
    /* another plan serves, on trial or permanently */
    void (*plan_changed)(void *ctx, struct dmn_model *m);
    void (*retune_begun)(void *ctx, struct dmn_model *m, const struct tun_algorithm *a);
    void (*profile_begun)(void *ctx);
    /* the serving plan was measured; t->plan is not set */
    void (*trial_ended)(void *ctx, struct dmn_model *m, const struct dmn_history_trial *t);
    struct dmn_plans_listener *next; /* in the list */
};

/** dmn_plans_listen() - adds @l, which must live as long as the daemon, behind earlier
 * listeners. */
void dmn_plans_listen(struct dmn_plans *plans, struct dmn_plans_listener *l);
