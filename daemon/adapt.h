/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt.h - the daemon notices that the machine changed, and plans again
 *
 * Once every adapt.window_ms the newest snapshot of the sensors and the clocks of every model's
 * teams become one window for tuner/adapt.h, which says when there is something to decide. A
 * decision is solved as queued work on a copy; on the loop it becomes a switch, which is measured
 * and taken back when it does not do what was predicted, or a search where planner.algorithm is
 * not exact. Every change of cores (daemon/hotplug.h) gives new execution places and a new cost
 * table, in which what was learned is carried over by core, and a plan on them at once. A state of
 * the machine (places, governors, limits) that was seen before returns to the plan kept for it.
 *
 * Plans that a user set (by hand or in the configuration) are left alone while their cores are
 * there. While a retune, a switch or a calibration runs nothing is watched. While a correction for
 * something foreign stands, the cost table of the model does not learn (dmn_adapt_holds()): it
 * stays what the cores do when they are free. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct dmn_adapt;
struct dmn_adapt_model;
struct dmn_daemon;
struct dmn_model;

/** dmn_adapt_start() - into d->adapt; watches from now on. After hotplug and gpio were started.
 * Return: 0 or -ENOMEM. */
int dmn_adapt_start(struct dmn_daemon *d);
/** dmn_adapt_stop() - ends it; decisions at work are left to themselves. The loop has to run once
 * more. */
void dmn_adapt_stop(struct dmn_daemon *d);
/** dmn_adapt_configure() - after a reload: the keys of adapt hold for every model. */
void dmn_adapt_configure(struct dmn_daemon *d);
/** dmn_adapt_model_free() - m->adapt of a model that goes. Takes models without one. */
void dmn_adapt_model_free(struct dmn_model *m);

/** dmn_adapt_holds() - the cost table is not to learn now. */
bool dmn_adapt_holds(const struct dmn_model *m);

/** dmn_adapt_keeps() - the plan that serves is one for this state of the machine, and not for
 * something foreign that goes on at present. */
bool dmn_adapt_keeps(const struct dmn_model *m);

/**
 * dmn_adapt_json() - what status says: {state, held, last, corrected, cooldown_s, windows,
 * decisions, switches, watches}
 * state: "off", "pinned" (a plan of the user), "waiting" (not enough is known yet, or something
 * else changes plans), "watching", "deciding", "verifying", "tuning". last: cause and outcome of
 * the last decision, or null. New reference.
 */
json_t *dmn_adapt_json(const struct dmn_model *m);
