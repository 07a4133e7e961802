/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/every_plan.h - all plans of a small problem, one after the other
 *
 * Any cuts, and any number of teams of each EP and width that its cores allow. Nothing is left out
 * but stages with more groups than the planner of as many boards gives them. Exponential; any
 * thread; no allocation.
 */
#pragma once

#include "tuner/problem.h"

/** psim_every_plan() - calls @visit for each plan, which is borrowed during the call. */
void psim_every_plan(const struct tun_problem *p,
                     void (*visit)(void *arg, const struct pl_plan *plan), void *arg);
