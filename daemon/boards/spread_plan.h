/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_plan.h - a plan over boards as the hops of a route
 *
 * Stages of one board that follow each other are one hop: how it computes its segment is decided by
 * the board itself. A stage that several boards share is one hop of these boards. A board may have
 * several hops. A board with hardly any share of a hop is left out of it.
 *
 * Pure functions; any thread.
 */
#pragma once

#include "daemon/boards/spread_problem.h"

/** dmn_plan_hops() - the hops of a plan, with shares and without leaves
 * @plan: valid for @t->p. @ret: [BRD_HOPS_MAX]. Return: 0 with *ret_count, 0 if all runs on the
 * head; -ENOSPC: more hops than a route may have; -EINVAL: a cost is unknown. */
int dmn_plan_hops(const struct dmn_spread_table *t, const struct pl_plan *plan, struct brd_hop *ret,
                  size_t *ret_count);

/** dmn_hops_load() - Return: a board of @b has other units there than in @a, so it must load a
 * segment. */
bool dmn_hops_load(const struct brd_hop *a, size_t a_count, const struct brd_hop *b,
                   size_t b_count);
/** dmn_hops_same() - Return: the same boards have the same units, in about the same shares. */
bool dmn_hops_same(const struct brd_hop *a, size_t a_count, const struct brd_hop *b,
                   size_t b_count);
