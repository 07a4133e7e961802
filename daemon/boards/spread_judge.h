/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_judge.h - what a way to serve should do, by the table
 *
 * Beyond tuner/eval_boards.h, it counts that a route has only so many frames on their way, as
 * piped-link's window has it (ipc/boards/route_window.h). With N of them and a latency L of the
 * worst frame, a frame comes out each L / N at best.
 *
 * Pure functions; any thread.
 */
#pragma once

#include "daemon/boards/spread_problem.h"
#include "tuner/outcome.h"

struct dmn_figures {
    bool possible;
    double bottleneck_ns, latency_ns, energy_nj;
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

struct dmn_judged {
    struct dmn_figures figures;
    char limit[TUN_ERROR_MAX];   /* what decides the throughput, a phrase; "": not possible */
    double hop_ns[BRD_HOPS_MAX]; /* of a frame in each hop, without links */
};
/** dmn_spread_judge_hops() - the same, and why. Return: the same. */
int dmn_spread_judge_hops(const struct dmn_spread_table *t, const struct brd_hop *hop, size_t count,
                          struct dmn_judged *ret);
/** dmn_spread_limit() - what decides the throughput of a plan with figures @f, a phrase. */
void dmn_spread_limit(const struct tun_problem *p, const struct pl_plan *plan,
                      const struct tun_outcome *o, const struct dmn_figures *f,
                      char ret[TUN_ERROR_MAX]);
