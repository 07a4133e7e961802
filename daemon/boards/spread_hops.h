/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_hops.h - a plan over boards as the hops of a route, hops as a plan, and
 * what they should do by the table
 *
 * Stages of one board that follow each other are one hop: how it computes its segment is decided by
 * the board itself. A stage that several boards share is one hop of these boards. A board may have
 * several hops. A board with hardly any share of a hop is left out of it.
 *
 * Beyond tuner/eval_boards.h, it counts that a route has only so many frames on their way, as
 * piped-link's window has it (ipc/boards/route_window.h). With N of them and a latency L of the
 * worst frame, a frame comes out each L / N at best.
 *
 * Pure functions; any thread.
 */
#pragma once

#include "daemon/boards/spread_table.h"
#include "tuner/eval.h"

/** dmn_plan_hops() - the hops of a plan, with shares and without leaves
 * @plan: valid for @t->p. @ret: [BRD_HOPS_MAX]. Return: 0 with *ret_count, 0 if all runs on the
 * head; -ENOSPC: more hops than a route may have; -EINVAL: a cost is unknown. */
int dmn_plan_hops(const struct dmn_spread_table *t, const struct pl_plan *plan, struct brd_hop *ret,
                  size_t *ret_count);

/** dmn_hops_plan() - the best plan by the table with just these hops. Return: 0; -EINVAL: a board
 * is not of the table, or the hops do not fit the model; -ENOMEM. */
int dmn_hops_plan(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                  struct pl_plan *ret);

/** dmn_hops_load() - Return: a board of @b has other units there than in @a, so it must load a
 * segment. */
bool dmn_hops_load(const struct brd_hop *a, size_t a_count, const struct brd_hop *b,
                   size_t b_count);
/** dmn_hops_same() - Return: the same boards have the same units, in about the same shares. */
bool dmn_hops_same(const struct brd_hop *a, size_t a_count, const struct brd_hop *b,
                   size_t b_count);

/* What a plan, or hops, do by the table. */
struct dmn_figures {
    bool possible;
    double bottleneck_ns, latency_ns, energy_nj;
    char limit[TUN_ERROR_MAX];   /* what decides the throughput, a phrase; "": not possible */
    double hop_ns[BRD_HOPS_MAX]; /* of hops: of a frame in each, without links */
};

/** dmn_spread_frames() - frames that may be on their way under this plan. */
double dmn_spread_frames(const struct tun_problem *p, const struct pl_plan *plan);
/** dmn_spread_figures() - of a plan and its outcome; not possible: it crosses a gap. */
struct dmn_figures dmn_spread_figures(const struct tun_problem *p, const struct pl_plan *plan,
                                      const struct tun_outcome *o);
/** dmn_spread_judge() - what hops do by the table, where each board computes its units as well as
 * it can. Return: 0; -EINVAL: a board is not of the table, or the hops do not fit the model;
 * -ENOMEM. */
int dmn_spread_judge(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                     struct dmn_figures *ret);
