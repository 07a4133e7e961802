/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/planner_private.h - work for a thread of its own: inputs copied, JSON out
 *
 * Pure functions of what they are given; any thread.
 */
#pragma once

#include <jansson.h>

#include "daemon/history.h"
#include "daemon/planner.h"

/* What an explanation is made from. */
struct dmn_explain {
    struct tun_problem problem;     /* owned */
    struct tun_trial trial;         /* plan: the one that serves; measured: by its clocks */
    char measured_at[DMN_DATE_MAX]; /* when; "": now */
    struct tun_outcome expected;
    bool expects;              /* expected is complete */
    double busy[PL_STAGE_MAX]; /* share of the last second, mean of the stage's teams */
    const char *algorithm;     /* static */
};

/** dmn_explain_json() - the explanation of PlanExplain. Return: new reference, NULL: no memory. */
json_t *dmn_explain_json(const struct dmn_explain *e);

/** dmn_front_json() - @max >= 1 plans of the throughput-latency front. @energy: the watts are
 * known. Return: 0 with a new reference, or -errno. */
int dmn_front_json(const struct tun_problem *p, size_t max, bool energy, json_t **ret);
