/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/plan.h - a plan as plain data: who runs which units
 *
 * Written as stages joined by '|', each FIRST-LAST@TEAMS, TEAMS being EP[xWIDTH][*COUNT] joined by
 * '+': 0-15@bigx4|16-25@littlex2*2      0-25@big*4+little*4 WIDTH and COUNT default to 1. Pure data
 * and pure functions; any thread; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_EP_MAX 16u /* kinds of execution places */
#define PL_EP_NAME_MAX 24u
#define PL_CPU_MAX 256u
#define PL_STAGE_MAX 64u
#define PL_GROUP_MAX 8u  /* team groups in one stage */
#define PL_TEAM_MAX 128u /* teams in one plan */
#define PL_PLAN_TEXT_MAX 4096u

/* An execution place as the pipeline needs it; cpus are kernel CPU numbers. */
struct pl_ep {
    char name[PL_EP_NAME_MAX];
    size_t cpu_count;
    uint16_t cpus[PL_CPU_MAX];
    double speed; /* relative, 1 = fastest kind; for dealing frames before anything was measured */
    uint64_t nodes; /* NUMA nodes of its cores, a bit each; 0: not known */
};
struct pl_ep_set {
    size_t count;
    struct pl_ep eps[PL_EP_MAX];
};

struct pl_group { /* count teams of width cores each, all of one EP */
    uint16_t ep;  /* index into the ep set */
    uint16_t width, count;
};
struct pl_stage_plan {
    uint16_t first_unit, last_unit;
    uint16_t group_count;
    struct pl_group groups[PL_GROUP_MAX];
};
struct pl_plan {
    size_t stage_count;
    struct pl_stage_plan stages[PL_STAGE_MAX];
};

/**
 * pl_plan_parse() - text to plan; @unit_count: of the model. @ret_error: at most @error_bytes, a
 * sentence Checks syntax, EP names, that the stages cover units 0..unit_count-1 in order without
 * gap, and the limits above; that WIDTH does not exceed the EP's cores. Return: 0 or -EINVAL.
 */
int pl_plan_parse(const char *text, const struct pl_ep_set *eps, size_t unit_count, char *ret_error,
                  size_t error_bytes, struct pl_plan *ret);

/** pl_plan_format() - plan to text: WIDTH and COUNT are left out where 1. Return: 0, or -ENOSPC. */
int pl_plan_format(const struct pl_plan *p, const struct pl_ep_set *eps, char *ret_text,
                   size_t text_bytes);

/** pl_plan_check() - the same checks on a plan that did not come from text. Return: 0 or -EINVAL.
 */
int pl_plan_check(const struct pl_plan *p, const struct pl_ep_set *eps, size_t unit_count,
                  char *ret_error, size_t error_bytes);

bool pl_plan_equal(const struct pl_plan *a, const struct pl_plan *b);

/** pl_plan_cores() - cores of @ep that the plan asks for; more than it has means cores are shared.
 */
size_t pl_plan_cores(const struct pl_plan *p, size_t ep);
/** pl_stage_nodes() - NUMA nodes whose cores run @stage, a bit each; 0 where one is not known. @of:
 * of these EPs alone, a bit each. */
uint64_t pl_stage_nodes(const struct pl_stage_plan *stage, const struct pl_ep_set *eps,
                        uint32_t of);
bool pl_plan_oversubscribed(const struct pl_plan *p, const struct pl_ep_set *eps);
