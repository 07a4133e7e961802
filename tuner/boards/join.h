/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/boards/join.h - a map of a problem, whose neighbouring units are joined where they are too
 * many for a pass */
#pragma once

#include "tuner/boards/map.h"

struct tun_joined {
    struct tun_problem p; /* owned; the map's */
    size_t *first;        /* [p.unit_count + 1]: of the units before, owned */
    bool coarse;          /* any are joined */
};

/** tun_joined_init() - Return: as tun_map_init(), but never TUN_E_ATOMS. */
int tun_joined_init(const struct tun_problem *p, const struct tun_space_options *o,
                    bool link_energy, struct tun_joined *ret, struct tun_map *ret_map);
void tun_joined_deinit(struct tun_joined *j, struct tun_map *m);

/** tun_joined_back() - the plan in units of the problem it began with. */
void tun_joined_back(const struct tun_joined *j, struct pl_plan *plan);
