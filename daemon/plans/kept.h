/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/kept.h - saves what was learned of each model, by EPs, governors, frequency limits
 * and quota
 *
 * Threads: the loop thread, which never blocks on the file, unless a function says otherwise.
 */
#pragma once

#include <stdbool.h>

#include "pipeline/plan.h"

struct dmn_load;
struct dmn_machine;
struct dmn_model;
struct dmn_plans;

/** dmn_kept_suits() - Return: the serving plan suits this state of the machine; false: it only
 * suits present interference, for which an EP may be split. */
bool dmn_kept_suits(const struct dmn_model *m);
/** dmn_kept_save() - keeps costs, hand-off, the serving plan and its origin for this state of the
 * machine, and saves them if there is a state folder. Does nothing unless dmn_kept_suits(). The
 * disk's thread writes; it logs a failure. */
void dmn_kept_save(struct dmn_model *m);
/** dmn_kept_read() - reads the file of a loaded model into l->kept. @plans: struct dmn_plans. Any
 * thread that owns the load; blocks on the disk. */
void dmn_kept_read(void *plans, struct dmn_load *l);
/**
 * dmn_kept_load() - loads what l->kept has for this state of the machine, else for one that
 * differs only in limits and quota, into the problem of l->planning (TUN_SAVED)
 *
 * @on: the machine in that state. @ret: the plan; l->origin is the user's if a user set it, else
 * DMN_FROM_SAVED. Return: 0; DMN_E_NO_PLAN: costs, but no plan that fits; -ENOENT: nothing.
 */
enum { DMN_E_NO_PLAN = 1 };
int dmn_kept_load(const struct dmn_machine *on, struct dmn_load *l, struct pl_plan *ret);
/** dmn_kept_plan() - finds the plan that was kept for exactly this state of the machine, unless a
 * user set it. Return: true with @ret set; false: there is none. */
bool dmn_kept_plan(const struct dmn_model *m, struct pl_plan *ret);
