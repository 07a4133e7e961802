/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/control/costs_table.h - a model's cost table, and the sources of its figures */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "tuner/problem.h"

struct dmn_model;

#define DMN_SOURCE_COUNT (TUN_MEASURED + 1)
/** dmn_planner_count() - counts the cells of the table by source. Threads: any. */
void dmn_planner_count(const struct tun_problem *p, size_t ret[DMN_SOURCE_COUNT]);

/** dmn_planner_problem_json() - the costs of dmn_planner_problem() in the form that pipesim reads.
 * Threads: the loop thread. Return: new reference. */
json_t *dmn_planner_problem_json(const struct dmn_model *m);
