/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/team.h - one team: takes the oldest frame from its rings, runs its units and passes the
 * frame on
 *
 * A team with a batch takes up to so many frames of those that wait for it, the oldest first, runs
 * its units for all of them (team_units.c), and passes them on in the order in which it
 * took them.
 *
 * A team owns a frame from ring pop to ring push, its scratch, its counters and its end of each of
 * its rings. When all its input rings are closed and empty, it closes its output rings and ends, so
 * that a set drains from front to back. When abort is set, it ends at once.
 * Nothing in its loop allocates, logs, or takes a lock.
 */
#pragma once

#include "pipeline/team_state.h"

/** pl_team_start() - starts the leader thread of a team whose constant fields are set. Return: 0,
 * -EAGAIN, -ENOMEM. Threads: loop. */
int pl_team_start(struct pl_team *t);
/** pl_team_wait_ready() - waits until the leader has set up its team. Return: 0, or the leader's
 * -errno. */
int pl_team_wait_ready(struct pl_team *t);

/**
 * pl_team_give() - gives a frame to the one of @count teams that is expected to finish it first
 * @rings: the calling thread's ring to each team, with room for all frames of the pipeline
 * Threads: the producer end of @rings.
 */
void pl_team_give(struct pl_team *const *teams, struct pl_ring *const *rings, size_t count,
                  struct pl_frame *f, uint64_t now_ns);

/** pl_team_view() - reads what a dispatcher needs of the team. Threads: any. */
struct pl_dispatch_view;
void pl_team_view(const struct pl_team *t, uint64_t now_ns, struct pl_dispatch_view *ret);

/** pl_team_stalled_ns() - Return: time since its last progress, 0 if it has no frame. Threads:
 * any. */
uint64_t pl_team_stalled_ns(const struct pl_team *t, uint64_t now_ns);
