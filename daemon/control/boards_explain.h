/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/boards_explain.h - routes explained, and fronts over boards, on a work thread
 *
 * Pure functions on copied inputs; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/boards/spread_query.h"

/** dmn_boards_explain_json() - adds to @route, the caller's own dmn_route_json(), what the table
 * says. @fixed: the route is not planned. Return: 0; -EINVAL or -ENOMEM. */
int dmn_boards_explain_json(const struct dmn_spread_query *q, bool fixed, json_t *route);

/** dmn_boards_front_json() - the reply of PlanFront over boards. @watts: the watts of cores are
 * known. Return: 0 with a new reference; as
 * dmn_spread_front(). */
int dmn_boards_front_json(const struct dmn_spread_query *q, size_t max, bool watts, json_t **ret);
