/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/json/costs_json.h - cost tables as JSON: the one writer and the one reader
 *
 * A recorded problem (RECORDED TABLES of pipesim(1)) has units, EPs and the time of every unit.
 * `pipectl costs --json` prints it, a decision is recorded with it, and pipesim reads it.
 *
 * The daemon keeps only the measured cells of a model, each with its uncertainty:
 *
 *     {EP: {"1": [[ns, sigma] or null, one a unit], "2": ...}}
 *
 * A row without a measured cell is left out. A wrong entry in a kept row counts as missing.
 *
 * What 2, 4 and 8 frames at once gain (tuner/problem.h), of both:
 *
 *     {EP: [[f, f, f] or null, one a unit]}
 *
 * null: nothing, or unknown. A recorded problem has it as "at_once", with "batch_wait_ns", where a
 * unit gains; both may be missing.
 *
 * Any thread; nothing is shared.
 */
#pragma once

#include "tuner/json/json_reader.h"

/* By enum tun_source; "unknown", "predicted", "saved", "measured". */
extern const char *const tun_source_names[];

/* The name of a unit, or NULL or "" for its number. */
typedef const char *(*tun_unit_name_fn)(const void *context, size_t unit);

/** tun_problem_json() - a recorded problem; @sources: also where each figure is from. @name_of:
 * NULL: numbers. Return: new reference, NULL without memory. */
json_t *tun_problem_json(const struct tun_problem *p, const char *model, bool sources,
                         tun_unit_name_fn name_of, const void *context);
/** tun_problem_read() - a recorded problem; unknown costs stay unknown. @p is owned by the caller
 * even after an error. */
void tun_problem_read(struct tun_reader *r, const json_t *root, struct tun_problem *p);

/** tun_spans_json() - what is known of teams over several EPs (tuner/span.h): {PLAN: [f, one a
 * unit; 0: unknown]}, by the plan in which such a team runs all units. Return: new reference. */
json_t *tun_spans_json(const struct tun_problem *p);
/** tun_spans_read() - @all: NULL: nothing is known. */
void tun_spans_read(struct tun_reader *r, const json_t *all, struct tun_problem *p);

/** tun_at_once_json() - what several frames gain; @kept: only what was measured on live frames.
 * Return: new reference; NULL: nothing. */
json_t *tun_at_once_json(const struct tun_problem *p, bool kept);
/** tun_at_once_take() - sets what @json has, as measured; wrong entries count as missing. Return: 0
 * or -ENOMEM. */
int tun_at_once_take(struct tun_problem *p, const json_t *json);

/** tun_costs_json() - the cells worth keeping. Return: new reference. */
json_t *tun_costs_json(const struct tun_problem *p);
/** tun_costs_take() - sets the cells of @p that @costs has, as TUN_SAVED. */
void tun_costs_take(struct tun_problem *p, const json_t *costs);
