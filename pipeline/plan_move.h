/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/plan_move.h - the same plan on other EPs: cores went, an EP was split, or joined again
 *
 * An EP is split where some of its cores do as others no longer do: each of these becomes an EP of
 * its own, named EP.CPU, behind all others, so that the EPs that are left keep their numbers. No
 * EP of a machine or a configuration has a '.' in its name.
 *
 * Pure functions on plain data; any thread; no allocation.
 */
#pragma once

#include "pipeline/plan.h"

/** pl_ep_like() - Return: index of the EP in @eps with most cores of @ep; SIZE_MAX: none has
 * any. */
size_t pl_ep_like(const struct pl_ep_set *eps, const struct pl_ep *ep);

/** pl_ep_common() - Return: how many cores both EPs have. */
size_t pl_ep_common(const struct pl_ep *a, const struct pl_ep *b);

/** pl_ep_base() - Return: length of the name of the EP that an EP called @name is a part of; of all
 * of it where it is no part. */
size_t pl_ep_base(const char *name);

/**
 * pl_eps_split() - makes EPs of their own of some cores
 * @cpus: [count], kernel numbers; those that no EP of @whole has, or that are the only core of
 * theirs, stay as they are
 * Return: 0; -ENOSPC: there would be more than PL_EP_MAX, or a name would be too long.
 */
int pl_eps_split(const struct pl_ep_set *whole, const uint16_t *cpus, size_t count,
                 struct pl_ep_set *ret);

/**
 * pl_plan_move() - translates a plan to other EPs
 *
 * Where the cores of an EP are all in one new EP, its teams go there. Where they are in several, a
 * team of one core goes where the core is that the pipeline pins it to (teams take the cores of an
 * EP in order), and a wider team to the EP that has all of its cores. A team over several EPs moves
 * only where each of these is one EP again. Equal groups of a stage
 * become one. So a plan that is moved to the parts of a split and back is the same, but for the
 * order in which a stage names its groups.
 *
 * Return: it fits there: no EP has to give more cores than it has, unless it had to before.
 */
bool pl_plan_move(const struct pl_plan *plan, const struct pl_ep_set *from,
                  const struct pl_ep_set *to, size_t unit_count, struct pl_plan *ret);
