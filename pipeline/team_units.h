/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/team_units.h - how a team runs its units for the frames that it holds
 *
 * Of several frames, a unit either computes all before the next unit begins, so that its weights
 * stay in the caches from frame to frame, or a frame goes on through the units that follow, so that
 * its values do. What is larger decides. Either way each unit's time is that of all frames.
 */
#pragma once

#include "pipeline/team_state.h"

/**
 * pl_team_run_units() - runs the team's units
 * @mems: [clock->computed], of the frames, at least one     @clock: started by the team
 * Sets the laps of the team's clocks if clock->timed. Threads: the leader. Return: false if the
 * pipeline is being freed and the frames are incomplete.
 */
bool pl_team_run_units(struct pl_team *t, const struct krn_mem *const *mems,
                       const struct pl_clock_run *clock);
