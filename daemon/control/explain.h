/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/explain.h - explains a plan or a route, and computes fronts, on a work thread
 *
 * Pure functions on copied inputs, which return JSON; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/boards/spread_query.h"
#include "daemon/plans/history.h"
#include "daemon/plans/planner.h"

/* Inputs of an explanation. */
struct dmn_explain {
    struct tun_problem problem;     /* owned */
    struct tun_trial trial;         /* plan: the serving one; measured: by its clocks */
    char measured_at[DMN_DATE_MAX]; /* date of `trial`; "": now */
    struct tun_outcome expected;
    bool expects;              /* `expected` is complete */
    double busy[PL_STAGE_MAX]; /* share of the last second, mean over the stage's teams */
    const char *algorithm;     /* static */
};

/** dmn_explain_json() - the explanation for PlanExplain. Return: new reference; NULL: out of
 * memory. */
json_t *dmn_explain_json(const struct dmn_explain *e);

/** dmn_front_json() - at most @max >= 1 plans of the throughput-latency front. @energy: the watts
 * are known. Return: 0 with a new reference, or -errno. */
int dmn_front_json(const struct tun_problem *p, size_t max, bool energy, json_t **ret);

/** dmn_boards_explain_json() - adds to @route, the caller's own dmn_route_json(), what the table
 * says. @fixed: the route is not planned. Return: 0; -EINVAL or -ENOMEM. */
int dmn_boards_explain_json(const struct dmn_spread_query *q, bool fixed, json_t *route);

/** dmn_boards_front_json() - the reply of PlanFront over boards. @watts: the watts of cores are
 * known. Return: 0 with a new reference; as dmn_spread_front(). */
int dmn_boards_front_json(const struct dmn_spread_query *q, size_t max, bool watts, json_t **ret);

#define DMN_SOURCE_COUNT (TUN_MEASURED + 1)
/** dmn_costs_count() - counts the cells of the table by source. */
void dmn_costs_count(const struct tun_problem *p, size_t ret[DMN_SOURCE_COUNT]);
