/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/explain.h - explains a plan, and computes a front, on a work thread
 *
 * Pure functions on copied inputs, which return JSON; any thread.
 */
#pragma once

#include <jansson.h>

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
