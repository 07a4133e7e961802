/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/oneboard/solution.h - the programs over a space (tuner/oneboard/oneboard.h), what they
 * find, and the plan that it stands for
 */
#pragma once

#include "tuner/oneboard/space.h"

struct tun_path_stage {
    size_t from, to;
    struct tun_option option;
};
struct tun_path {
    size_t count;
    double figure, bottleneck_ns;
    struct tun_path_stage stages[PL_CPU_MAX]; /* first stage first */
};

enum { TUN_E_GROUPS = 3, TUN_E_TEAMS = 4 };

/** tun_path_prepend() - one more stage in front; there is room, and bottleneck_ns takes it in. */
void tun_path_prepend(const struct tun_space *s, const struct tun_path_stage *stage,
                      struct tun_path *to);

/** tun_path_plan() - writes the plan. Return: 0; TUN_E_GROUPS, TUN_E_TEAMS: it passes TUN_GROUP_MAX
 * or PL_TEAM_MAX. */
int tun_path_plan(const struct tun_space *s, const struct tun_path *path, struct pl_plan *ret);

/** tun_space_relax() - narrows the space where a plan passed a limit
 * @outcome: TUN_E_GROUPS or TUN_E_TEAMS. Return: the narrowed space is worth another try. */
bool tun_space_relax(struct tun_space_options *o, int outcome);

/* ---- the first program, F: the least bottleneck (period.c) ---- */

/** tun_reach_front() - least steps of the last dimension for the atoms in front of each border, by
 * row, with no period above 1 / need
 * @layers: 0, or the most stages. @ret: [layers + 1][atom_count + 1][row_count] */
void tun_reach_front(const struct tun_space *s, struct tun_maker *m, double need, size_t layers,
                     int16_t *ret);
/** tun_reach_back() - the same for the atoms behind each border. @ret: [atom_count + 1][row_count]
 */
void tun_reach_back(const struct tun_space *s, struct tun_maker *m, double need, int16_t *ret);

/** tun_least_period() - the least bottleneck and a plan that has it. Return: 0, -ENOMEM, or
 * TUN_E_IMPOSSIBLE (only with a forbidden stage). */
int tun_least_period(const struct tun_space *s, struct tun_path *ret);

/* ---- the second one, G: latency or energy within a bound on the period (second.c) ---- */

/** tun_second() - the least figure with no period above @period_ns (INFINITY: any). Return: 0,
 * TUN_E_IMPOSSIBLE or -ENOMEM. */
int tun_second(const struct tun_space *s, double period_ns, enum tun_figure figure,
               struct tun_path *ret);

/* ---- the least energy with bounds on both period and latency (thrifty.c) ---- */

/** tun_thrifty() - Return: as tun_second(). @ret_cut: partial plans were left out, so the answer
 * may not be the best; written only then. */
int tun_thrifty(const struct tun_space *s, double period_ns, double latency_ns,
                struct tun_path *ret, bool *ret_cut);
