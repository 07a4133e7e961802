/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/boards/board_nodes.h - which boards may follow which: nodes and edges of a map */
#pragma once

#include "tuner/boards/map.h"

/** tun_nodes_make() - fills nodes and edges from the classes. Return: 0 or -ENOMEM. */
int tun_nodes_make(struct tun_map *m);

/** tun_nodes_present() - boards that have an EP. */
uint32_t tun_nodes_present(const struct tun_map *m);

/** tun_nodes_in_order() - does @set take the first free boards of each class. */
bool tun_nodes_in_order(const struct tun_map *m, uint32_t free_boards, uint32_t set);

/** tun_nodes_canonical() - as many boards of each class, the first ones. */
uint32_t tun_nodes_canonical(const struct tun_map *m, uint32_t set);

static inline bool tun_single(uint32_t mask)
{
    return (mask & (mask - 1)) == 0;
}
