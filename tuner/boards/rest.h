/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/boards/rest.h - how many units some boards can run at most */
#pragma once

#include "tuner/boards/map.h"

/**
 * tun_rest() - for each set of boards the first unit from which they may be able to run the rest,
 * if links and memory were nothing
 * @reach: [n + 1] of each kind, as tun_inner_reach(). @ret: [1 << boards], by mask; only sets of
 * the
 * map's order are written (tun_nodes_canonical()).
 */
void tun_rest(struct tun_map *m, double period_ns, uint16_t *const *reach, uint16_t *ret);
