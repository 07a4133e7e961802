/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/json.h - the state of the rooms as JSON for replies
 *
 * Every json_t returned is a new reference. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_text.h"
#include "daemon/boards/spread_query.h"
#include "daemon/plans/history.h"
#include "daemon/plans/planner.h"
#include "ipc/protocol.h"
#include "pipeline/plan.h"

struct dmn_boards;
struct dmn_config;
struct dmn_control;
struct dmn_failed_models;
struct dmn_machine;
struct dmn_mix;
struct dmn_model;
struct dmn_models;

/** dmn_json_positive() - a number; null: it is unknown, so 0 or less. */
static inline json_t *dmn_json_positive(double x)
{
    return x > 0 ? json_text_number(x) : json_null();
}
/** dmn_json_cores() - a list of @count kernel numbers. */
static inline json_t *dmn_json_cores(const uint16_t *cpus, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_integer(cpus[i]));
    }
    return list;
}

/* status.c */
/** dmn_status_json() - the reply of Status. @model: only this one; "": all. */
json_t *dmn_status_json(struct dmn_control *control, const char *model);
extern const char *const dmn_policy_names[]; /* by enum ipc_policy */
/* mix_methods.c */
/** dmn_mix_json() - a plan for all models, as PlanMix and Status tell it. @models: those that
 * serve. */
json_t *dmn_mix_json(const struct dmn_mix *x, const struct dmn_models *models);
/* sensors_json.c */
/** dmn_sensors_json() - "sensors" of Status, with gpio; what is unknown is null. */
json_t *dmn_sensors_json(const struct dmn_machine *m);
/* boards_methods.c */
/** dmn_route_json() - of @m, as Status shows it; null if it is not spread over boards. */
json_t *dmn_route_json(const struct dmn_boards *b, const struct dmn_model *m);
/** dmn_boards_json() - the boards that piped-link reports; an empty list without it. */
json_t *dmn_boards_json(const struct dmn_boards *b);
/* metrics.c */
/** dmn_metrics_text() - Return: owned (free); NULL: out of memory. */
char *dmn_metrics_text(struct dmn_control *control);
/* model_methods.c */
/** dmn_config_json() - a list of {key, value, origin, unit, default, help}. Return: NULL: out of
 * memory. */
json_t *dmn_config_json(const struct dmn_config *c);

/* history_json.c */
json_t *dmn_event_json(const struct dmn_history_event *e);
/** dmn_history_json() - at most @limit events of @model ("": all models), newest last. */
json_t *dmn_history_json(const struct dmn_history *h, const char *model, size_t limit);
/** dmn_adapt_json() - {state, held, last, corrected, cooldown_s, windows, decisions, switches,
 * watches}. state: dmn_adapt_phase_names. last: cause and outcome of the last decision; null:
 * none. */
json_t *dmn_adapt_json(const struct dmn_model *m);

/* models_json.c: for Models and Load, for Status, for Units */
json_t *dmn_model_json(const struct dmn_model *m);
json_t *dmn_model_status_json(const struct dmn_model *m);
json_t *dmn_model_units_json(const struct dmn_model *m);
/** dmn_failed_json() - Return: a list of name, path and error. */
json_t *dmn_failed_json(const struct dmn_failed_models *failed);
/** dmn_model_warnings_json() - @kinds: gets the kind of each, may be NULL. */
json_t *dmn_model_warnings_json(const struct dmn_model *m, json_t *kinds);
/** dmn_model_busy() - mean share of the last second in which the teams of each stage held
 * frames. */
void dmn_model_busy(const struct dmn_model *m, double ret[PL_STAGE_MAX]);

/* ---- explain.c: explains a plan or a route, and computes fronts, on a work thread. Pure functions
 * on copied inputs; any thread. ---- */

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
