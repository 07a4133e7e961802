/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/plans.h - which plan serves, and why: the state of this room, and its interface to
 * the daemon
 *
 * Owns each model's costs (planner.h, profile.h), the serving plan (switch.h, the only way
 * to change it), searches on live frames (retune.h), and the history (history.h). Uses models/ and
 * machine/, and listens to them. Reports through struct dmn_plans_listener (switch.h) and done
 * callbacks. Keeps a struct dmn_planning (planning.h) for each model; daemon/adapt/ says
 * what interference forbids to learn (held()).
 *
 * Threads: the loop thread.
 */
#pragma once

#include <uv.h>

#include "daemon/machine/machine.h"
#include "daemon/models/models.h"
#include "daemon/plans/history.h"

struct dmn_plans_listener;
struct dmn_profile;

/* What must not be learned or saved while something disturbs the model. */
struct dmn_costs_hold {
    bool learning; /* the clocks show interference: do not learn costs */
    bool trials;   /* nor from the search that it started, whose plan is not saved either */
    bool keeping;  /* nor save the plan of keeping_epoch: it suits the interference */
    uint32_t keeping_epoch;
};

struct dmn_plans {
    /* set by the owner before dmn_plans_init(); all borrowed */
    struct dmn_models *models; /* plans/ uses its state folder, too */
    struct dmn_machine *machine;
    const char *scratch_dir; /* for temporary files */
    /* set by daemon/adapt/ if it watches; NULL: anything may be learned and saved */
    struct dmn_costs_hold (*held)(const struct dmn_model *m);
    /* state of this room */
    struct dmn_history history;
    struct dmn_plans_listener *listeners; /* borrowed */
    struct dmn_models_listener hears;
    struct dmn_gpio_listener lines;
    struct dmn_profile *profile; /* owned; NULL before dmn_plans_start() */
    uv_timer_t timer;            /* runs while there are retunes */
    bool timing;                 /* the timer is open */
};

/** dmn_plans_init() - starts to listen to models and lines, and becomes the planner of
 * @plans->models. */
void dmn_plans_init(struct dmn_plans *plans);
/** dmn_plans_start() - call once the EPs are known: makes the history and reads the saved profile.
 * Return: 0 or -ENOMEM. */
int dmn_plans_start(struct dmn_plans *plans);
/** dmn_plans_give_up() - ends every search and profile and refuses whoever waits. @why: for
 * people. */
void dmn_plans_give_up(struct dmn_plans *plans, const char *why);
/** dmn_plans_stop() - starts nothing new; models may still end. The loop must run once more. */
void dmn_plans_stop(struct dmn_plans *plans);
/** dmn_plans_deinit() - call after the last model has gone. */
void dmn_plans_deinit(struct dmn_plans *plans);

/** dmn_plans_settle() - goes on after a finished switch or collected frames. Called for every model
 * before the loop waits. */
void dmn_plans_settle(struct dmn_model *m);
