/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/oneboard/oneboard.h - the exact planner of one board
 *
 * The space: consecutive units in stages; a stage has teams of any EPs, widths and counts that
 * share its frames; no core is given out twice. Dynamic programming over (unit, cores used of each
 * EP). With R(i..j, r) the highest rate sum_t 1/T_t of teams within the cores r,
 *     F(j, u) = min over i, r <= u of  max(F(i, u - r), 1 / R(i..j, r))
 * is the best bottleneck of the first j units on cores u. For the second figure (latency, energy)
 * an additive program runs over the stages whose period is within the bound the first one found:
 *     G(j, u) = min over i, r <= u of  G(i, u - r) + g(i..j, r, bound)
 * (chains-on-chains with replication; the equal case with two EPs is HeRAD, Orhan et al. 2025).
 *
 * Ties go to the lower bottleneck (closed in on with a bounded number of programs), then to fewer
 * of the fastest cores. Where the table of states would pass TUN_STATES_MAX, cores are handed out
 * in blocks (a power of two for the EPs with most cores), and EPs of one block are bundled;
 * where there are more units than a pass over all segments can afford (hundreds), neighbours are
 * joined in advance; where a plan would pass TUN_GROUP_MAX or PL_TEAM_MAX, stages get one width of
 * an EP, or teams get wider. POWER with a bound on latency too keeps at most 48 partial plans of a
 * state, and none beyond 512 states or 2^20 states times segments. The result then says so
 * (blocks): exact no more, still a valid plan. Bounds are kept to the last bit as tun_eval() sums.
 *
 * With options.batch_max above 1 the teams of a stage may take 2, 4, 8 frames at once, up to that.
 * The rate of a stage is then that of its largest batch, and a way to run it for latency has a
 * batch of its own.
 *
 * Where teams compete for memory (tuner/memory.h), what a stage takes depends on the others, which
 * no such program can see. Then it is exact for a table in which every unit takes what it takes
 * while all other cores stream as much as they do on average: first as if each ran the whole
 * network, then, for at most three rounds, as in the plan just found. Of these plans the best by
 * tun_eval(), which knows the plan, is the answer. With bounds, plans that pass them by tun_eval()
 * are solved again for tighter ones.
 *
 * Pure functions; any thread; they allocate.
 */
#pragma once

#include "tuner/eval.h"

/* Which bound no plan keeps: with it dropped, some plan exists. */
enum tun_short {
    TUN_SHORT_NONE,
    TUN_SHORT_MEMORY,
    TUN_SHORT_ENERGY, /* of a board */
    TUN_SHORT_TIME,   /* period or latency */
};

struct tun_solution {
    struct pl_plan plan;
    struct tun_outcome outcome; /* by the table */
    bool blocks;                /* something was left out, see above: not exact */
    enum tun_short missing;     /* with TUN_E_IMPOSSIBLE over several boards */
};

/** tun_oneboard_solve() - tun_solve() for one board, in a part of the space
 * @p: was checked. Return: as tun_solve(). */
struct tun_space_options;
int tun_oneboard_solve(const struct tun_problem *p, const struct tun_space_options *o,
                       struct tun_solution *ret);
