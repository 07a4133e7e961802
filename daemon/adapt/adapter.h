/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt/adapter.h - notices that the machine changed, and plans again
 *
 * Every adapt.window_ms the newest sensor snapshot and the clocks of every model's teams form one
 * window for tuner/adapt/adapt.h, which says when a decision is due. Queued work solves it on a
 * copy. The loop then switches, or if planner.algorithm is not exact starts its search; measures
 * the new plan and switches back if it is worse than predicted.
 *
 * A change of cores (daemon/machine/hotplug.h) leads at once to new EPs, a new cost table that
 * carries over what was learned of each core, and a plan for them. In a state of the machine (EPs,
 * governors, limits) that was seen before, the plan saved for it serves again.
 *
 * A plan that a user set (by hand or in the configuration) is not replaced while its cores exist.
 * Nothing is watched during a retune, a switch or a profile. While a correction for interference is
 * active, the model's cost table does not learn (dmn_plans.held()): it holds the times of
 * undisturbed cores. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/plans/history.h"
#include "tuner/adapt/adapt.h"

struct dmn_adapt;
struct dmn_model;
struct dmn_plans;

/** dmn_adapt_start() - starts to watch the models of @plans. Call after hotplug and gpio have been
 * started. @plans: borrowed. Return: 0 with @ret owned, or -ENOMEM. */
int dmn_adapt_start(struct dmn_plans *plans, struct dmn_adapt **ret);
/** dmn_adapt_stop() - stops; queued decisions are detached. Its memory is freed in the
 * loop's next turn, after the models. Takes NULL. Return: NULL. */
struct dmn_adapt *dmn_adapt_stop(struct dmn_adapt *adapt);
/** dmn_adapt_configure() - applies the keys of adapt after a reload, to every model. Takes NULL. */
void dmn_adapt_configure(struct dmn_adapt *adapt);

enum dmn_adapt_phase {
    DMN_ADAPT_OFF,
    DMN_ADAPT_PINNED,  /* a user's plan serves */
    DMN_ADAPT_WAITING, /* too little is known yet, or something else changes plans */
    DMN_ADAPT_WATCHING,
    DMN_ADAPT_DECIDING,
    DMN_ADAPT_VERIFYING,
    DMN_ADAPT_TUNING, /* a search runs that a decision asked for */
};
/** dmn_adapt_phase_name() - Return: static. */
const char *dmn_adapt_phase_name(enum dmn_adapt_phase phase);

/* The state of adaptation of one model. */
struct dmn_adapt_state {
    enum dmn_adapt_phase phase;
    bool known;                     /* the members below are valid; false: never watched */
    bool decided;                   /* there was a decision */
    enum tun_cause cause;           /* of the last decision */
    enum dmn_event_outcome outcome; /* of the last decision */
    enum tun_hold held;             /* the guard that held the last decision back */
    bool corrected;                 /* a correction for interference is active */
    uint64_t cooldown_ns;
    uint64_t windows; /* watched so far */
    unsigned decisions, switches;
};
void dmn_adapt_state(const struct dmn_model *m, struct dmn_adapt_state *ret);
/** dmn_adapt_watched() - describes the group of teams @index. Return: true with @ret set; false: no
 * such group, or nothing is watched. */
bool dmn_adapt_watched(const struct dmn_model *m, size_t index, struct tun_watch_view *ret);
