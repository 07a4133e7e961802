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

#include "apps/page/page.h"
#include "apps/pipectl/common/output.h"

struct report {
    FILE *to;
    /* borrowed from what was gathered */
    const json_t *data, *sample, *after, *series;
    bool frames; /* some were answered meanwhile: figures are of these, else of all */
};
#define REPORT_EACH_MODEL(r, i, m) json_text_each(json_object_get((r)->after, "models"), i, m)

/** report_write() - the whole page. */
void report_write(FILE *to, const json_t *data);

/* Its sections. */
void report_speed(const struct report *r); /* rates, latency, where the time of a frame goes */
void report_model(const struct report *r, size_t i, const json_t *model); /* stages, units */
void report_plans(const struct report *r, size_t i, const json_t *model); /* and their front */
void report_history(const struct report *r);
void report_machine(const struct report *r);

/* For sections: about the looks at the daemon. */

/** report_time_chart() - Return: new: a chart of lines over the seconds watched. */
json_t *report_time_chart(const struct report *r, const char *id, const char *title,
                          const char *label);
/* A number of each look. */
struct report_value {
    const char *list; /* key of a look; NULL: the number is in the look itself */
    const char *name; /* of the list's entry, if it is an object; else NULL */
    size_t i;         /* of the list's entry, if it is an array */
    const char *key;
    double scale;
};
/** report_curve() - Return: new: points of the number. */
json_t *report_curve(const struct report *r, const struct report_value *v);
/** report_rate() - Return: new: points of what it grew by in a second, at most @most. */
json_t *report_rate(const struct report *r, const struct report_value *v, double most);

/* metrics.c */

/** report_metrics() - Return: new: of the Prometheus text of Metrics {MODEL: {latency, queue,
 * compute, preparing: {le: [s], count: [frames up to le], sum, frames}, units: {UNIT: {sum,
 * frames}}}}. */
json_t *report_metrics(const char *text);
