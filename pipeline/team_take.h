/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/team_take.h - how a team takes frames off its rings
 *
 * It takes the oldest frame of all its rings; without one it spins, then sleeps. With a batch it
 * takes more of those that are there, the oldest first, and waits for more if batch_wait_ns allows
 * it. A frame joins only as long as none of those taken before is expected to miss its deadline for
 * it.
 */
#pragma once

#include "pipeline/team_state.h"

/* The frames that a team computes at once, in the order in which it took them. */
struct pl_held {
    struct pl_frame *frames[PL_BATCH_MAX];
    size_t count;
};

/** pl_team_take() - takes 1 to t->batch frames, sleeping until there is one. Threads: the leader.
 * Return: false when the team has to end. */
bool pl_team_take(struct pl_team *t, struct pl_held *ret);
