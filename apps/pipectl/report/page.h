/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/report/page.h - the page of pipectl report, from what was gathered
 *
 * Pure but for the stream that it writes to. What was gathered is an object with these keys:
 * - at (time of the report, as in History), host, seconds (watched, by the daemon's clock)
 * - sample: as in doctor.h, without config; findings, figures, stages, machine: judged from it
 * - series: one for each look at the daemon: {s, models: {MODEL: {answered, p50, p99}}, policies,
 *   thermal, cpu_waited_us}
 * - fronts: {MODEL: front of PlanFront}
 * - metrics: {before, after}: what report_metrics() returns
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "apps/page/page.h"

struct report {
    FILE *to;
    /* borrowed from what was gathered */
    const json_t *data, *sample, *after, *series;
    bool frames; /* some were answered meanwhile: figures are of these, else of all */
};
#define REPORT_EACH_MODEL(r, i, m) json_array_foreach(json_object_get((r)->after, "models"), i, m)

/** report_write() - the whole page. */
void report_write(FILE *to, const json_t *data);

/* Its sections. */
void report_speed(const struct report *r); /* rates, latency, where the time of a frame goes */
void report_model(const struct report *r, size_t i, const json_t *model); /* stages, units */
void report_plans(const struct report *r, size_t i, const json_t *model); /* and their front */
void report_history(const struct report *r);
void report_machine(const struct report *r);

/* For sections: report_draw.c. */

/** report_number() - Return: the number at a path; NAN: there is none. */
double report_number(const json_t *object, const char *path);
/** report_draw() - writes the chart, if it has a point or a value; takes it. */
void report_draw(const struct report *r, json_t *chart);

/* report_metrics.c */

/** report_metrics() - Return: new: of the Prometheus text of Metrics {MODEL: {latency, queue,
 * compute, preparing: {le: [s], count: [frames up to le], sum, frames}, units: {UNIT: {sum,
 * frames}}}}. */
json_t *report_metrics(const char *text);
