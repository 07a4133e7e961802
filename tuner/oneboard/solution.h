/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/oneboard/solution.h - what a program over a space found, and the plan that it stands for
 */
#pragma once

#include "tuner/oneboard/options.h"

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

/** tun_path_plan() - writes the plan. Return: 0; TUN_E_GROUPS, TUN_E_TEAMS: it passes TUN_GROUP_MAX
 * or PL_TEAM_MAX. */
int tun_path_plan(const struct tun_space *s, const struct tun_path *path, struct pl_plan *ret);

/** tun_space_relax() - narrows the space where a plan passed a limit
 * @outcome: TUN_E_GROUPS or TUN_E_TEAMS. Return: the narrowed space is worth another try. */
bool tun_space_relax(struct tun_space_options *o, int outcome);
