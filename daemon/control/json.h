/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/json.h - the state of the rooms as JSON for replies
 *
 * Every json_t returned is a new reference. Threads: the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "daemon/plans/history.h"
#include "pipeline/plan.h"

struct dmn_config;
struct dmn_control;
struct dmn_failed_models;
struct dmn_model;

/* status.c */
/** dmn_status_json() - the reply of Status. @model: only this one; NULL: all. */
json_t *dmn_status_json(struct dmn_control *control, const char *model);
/* metrics.c */
/** dmn_metrics_text() - Return: owned (free); NULL: out of memory. */
char *dmn_metrics_text(struct dmn_control *control);
/* config_json.c */
/** dmn_config_json() - a list of {key, value, origin, unit, default, help}. Return: NULL: out of
 * memory. */
json_t *dmn_config_json(const struct dmn_config *c);

/* history_json.c */
json_t *dmn_event_json(const struct dmn_history_event *e);
/** dmn_history_json() - at most @limit events of @model (NULL: all models), newest last. */
json_t *dmn_history_json(const struct dmn_history *h, const char *model, size_t limit);
/* decision_json.c */
/** dmn_decided_json() - the record and the decision, in the form that `pipesim replay` reads. */
json_t *dmn_decided_json(const struct dmn_decided *d);

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
