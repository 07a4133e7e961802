/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/seen.h - which plans a search has measured already
 *
 * A hash of plans that holds indices of the search's log and no plans of its own. Two plans are the
 * same when pl_plan_equal() says so; the groups of a stage must come in one order (EP, then
 * width), as all searches here write them. Only files of tuner/ include it.
 */
#pragma once

#include "tuner/trial_result.h"

struct tun_seen {
    size_t *slots; /* [room], index + 1, 0: free; owned */
    size_t count, room;
};

/** tun_seen_reserve() - room for one more add(). Return: 0 or -ENOMEM. */
int tun_seen_reserve(struct tun_seen *s, const struct tun_trial *log);
/** tun_seen_add() - the plan of log[index]; after tun_seen_reserve(); a plan that is there already
 * stays as it is. */
void tun_seen_add(struct tun_seen *s, const struct tun_trial *log, size_t index);
/** tun_seen_find() - Return: the log index of @plan, or SIZE_MAX. */
size_t tun_seen_find(const struct tun_seen *s, const struct tun_trial *log,
                     const struct pl_plan *plan);
void tun_seen_deinit(struct tun_seen *s);
