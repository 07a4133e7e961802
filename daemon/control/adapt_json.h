/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/control/adapt_json.h - a model's adaptation, as in Status */
#pragma once

#include <jansson.h>

struct dmn_model;

/** dmn_adapt_json() - {state, held, last, corrected, cooldown_s, windows, decisions, switches,
 * watches}. state: dmn_adapt_phase_name(). last: cause and outcome of the last decision, or null.
 * Threads: the loop thread. Return: new reference. */
json_t *dmn_adapt_json(const struct dmn_model *m);
