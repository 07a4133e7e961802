/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_front.h - plans over boards of which none beats another in throughput, in
 * the most memory and in the most energy of a board
 *
 * Pure functions; any thread; they allocate, and may take seconds.
 */
#pragma once

#include "daemon/boards/spread_query.h"
#include "tuner/oneboard/oneboard.h"

struct dmn_spread_front {
    struct dmn_spread_table t;     /* owned */
    struct tun_solution *solution; /* [count], by falling throughput, owned */
    size_t count;
    bool exact; /* it is the whole front */
};
#define DMN_SPREAD_FRONT_NULL ((struct dmn_spread_front){0})

/** dmn_spread_front() - @max: at most so many, >= 1. @ret: dmn_spread_front_deinit(). Return: 0
 * with .count >= 1; -ENODATA: no other board can be planned for; -ENOENT: no plan fits in the
 * boards; -EINVAL; -ENOMEM. */
int dmn_spread_front(const struct dmn_spread_query *q, size_t max, struct dmn_spread_front *ret);
void dmn_spread_front_deinit(struct dmn_spread_front *f);

/** dmn_spread_front_texts() - a plan, and its route, with boards' names
 * @ret_plan: PL_PLAN_TEXT_MAX. @ret_route: DMN_ROUTE_TEXT_MAX; "": all on this board, or a route
 * cannot say it. Return: 0 or -ENOMEM. */
int dmn_spread_front_texts(const struct dmn_spread_front *f, size_t i,
                           const struct brd_link_report_all *r, char *ret_plan, char *ret_route);
