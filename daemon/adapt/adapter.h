/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt/adapter.h - notices that the machine changed, and plans again
 *
 * Every adapt.window_ms the newest sensor snapshot and the clocks of every model's teams form one
 * window for tuner/adapt/adapt.h, which says when a decision is due. Queued work solves it on a
 * copy. The loop then switches, or if planner.algorithm is not exact starts its search; measures
 * the new plan and switches back if it is worse than predicted.
 *
 * A change of cores (daemon/machine/hotplug.c) leads at once to new EPs, a new cost table that
 * carries over what was learned of each core, and a plan for them. In a state of the machine (EPs,
 * governors, limits) that was seen before, the plan saved for it serves again.
 *
 * A plan that a user set (by hand or in the configuration) is not replaced while its cores exist.
 * Nothing is watched during a retune, a switch or a profile. While a correction for interference is
 * active, the model's cost table does not learn (dmn_plans.held()): it holds the times of
 * undisturbed cores. Threads: the loop thread.
 */
#pragma once

#include "daemon/adapt/watched_model.h"
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

/** dmn_adapt_phase_name() - Return: static. */
const char *dmn_adapt_phase_name(enum dmn_adapt_phase phase);

void dmn_adapt_state(const struct dmn_model *m, struct dmn_adapt_state *ret);
/** dmn_adapt_watched() - describes the group of teams @index. Return: true with @ret set; false: no
 * such group, or nothing is watched. */
bool dmn_adapt_watched(const struct dmn_model *m, size_t index, struct tun_watch_view *ret);
