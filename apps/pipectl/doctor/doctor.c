/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/doctor/doctor.h"

#include <math.h>

#include "apps/pipectl/doctor/facts.h"
#include "apps/show/fold_segments.h"

#define UNKNOWN_LOSS 0.1 /* how a loss without a figure is ranked */

#define DOCTOR_ROW(name, severity, function) {name, DOCTOR_##severity, doctor_##function},
static const struct doctor_rule rules[] = {DOCTOR_RULES(DOCTOR_ROW)};

/* Models that nobody asks come last (-1), whatever is to be said about them. */
static double rank(const struct doctor *d, const json_t *finding)
{
    const json_t *model = doctor_model(d, finding, "model");
    const char *severity = ctl_text(finding, "severity");
    double share = ctl_value(finding, "share");

    if (strcmp(severity, DOCTOR_FAILURE) == 0) {
        return 2;
    }
    if (model && d->seconds > 0 && doctor_is_aside(d, model)) {
        return -1;
    }
    if (!isnan(share)) {
        return share;
    }
    return strcmp(severity, DOCTOR_LOSS) == 0 ? UNKNOWN_LOSS : 0;
}

/* Return: a new list, costliest first; equal ones stay in the order of the table. */
static json_t *ranked(const struct doctor *d)
{
    json_t *list = json_array();

    json_text_each(d->findings, i, f) {
        size_t at = json_array_size(list);

        while (at > 0 && rank(d, json_array_get(list, at - 1)) < rank(d, f)) {
            at--;
        }
        json_array_insert(list, at, f);
    }
    return list;
}

static struct doctor doctor_of(const json_t *sample)
{
    struct doctor d = {.sample = sample,
                       .before = json_object_get(sample, "before"),
                       .after = json_object_get(sample, "after"),
                       .models = json_object_get(sample, "models"),
                       .programs = json_object_get(sample, "programs")};
    double pid = ctl_value(d.before, "pid"), now = ctl_value(d.after, "pid");
    double passed = ctl_value(d.after, "uptime_s") - ctl_value(d.before, "uptime_s");

    d.restarted = pid < now || pid > now || passed < 0;
    d.seconds = pid == now && passed > 0 ? passed : 0;
    return d;
}

double doctor_seconds(const json_t *sample)
{
    return doctor_of(sample).seconds;
}

json_t *doctor_judge(const json_t *sample)
{
    struct doctor d = doctor_of(sample);
    json_t *list;

    d.findings = json_array();
    for (size_t i = 0; i < base_array_count(rules); i++) {
        d.rule = &rules[i];
        d.rule->judge(&d);
    }
    list = ranked(&d);
    json_decref(d.findings);
    return list;
}

bool doctor_is_well(const json_t *findings)
{
    json_text_each(findings, i, f) {
        if (strcmp(ctl_text(f, "severity"), DOCTOR_NOTE) != 0) {
            return false;
        }
    }
    return true;
}

json_t *doctor_figures(const json_t *sample)
{
    struct doctor d = doctor_of(sample);
    json_t *list = json_array();

    DOCTOR_EACH_MODEL(&d, i, m) {
        bool never = ctl_value(m, "frames.answered") == 0;
        const json_t *latency = never ? NULL : json_object_get(m, "latency_ms");
        char segment[SHW_SEGMENT_BYTES];
        struct doctor_stage s = {
            .busy = NAN, .off_core = NAN, .service_ms = NAN, .expected_ms = NAN};

        shw_segment_text(m, segment);
        doctor_busiest(&d, m, &s);
        json_array_append_new(
            list,
            json_pack("{s:s, s:s?, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "model",
                      ctl_text(m, "name"), "segment", shw_is_segment(m) ? segment : NULL, "fps",
                      json_text_number(d.seconds > 0 ? doctor_answered(&d, m) / d.seconds : NAN),
                      "p50_ms", json_text_number(ctl_value(latency, "p50")), "p99_ms",
                      json_text_number(ctl_value(latency, "p99")), "stage",
                      ctl_text(s.status, "units"), "busy", json_text_number(s.busy), "off_core",
                      json_text_number(s.off_core), "service_ms", json_text_number(s.service_ms),
                      "expected_ms", json_text_number(s.expected_ms)));
    }
    return list;
}

json_t *doctor_stages(const json_t *sample)
{
    struct doctor d = doctor_of(sample);
    json_t *models = json_object();

    DOCTOR_EACH_MODEL(&d, i, m) {
        size_t count = json_array_size(json_object_get(m, "stages"));
        json_t *list = json_array();

        for (size_t k = 0; k < count; k++) {
            struct doctor_stage s = doctor_stage_of(&d, m, k);

            json_array_append_new(list,
                                  json_pack("{s:o, s:o, s:o}", "busy", json_text_number(s.busy),
                                            "off_core", json_text_number(s.off_core), "cpu_ms",
                                            json_text_number(s.cpu_ms)));
        }
        json_object_set_new(models, ctl_text(m, "name"), list);
    }
    return models;
}

json_t *doctor_machine(const json_t *sample)
{
    static const char *const keys[] = {"cpus", "governor", "freq_khz", "limit_khz", "max_freq_khz"};
    struct doctor d = doctor_of(sample);
    json_t *clocks = json_array();

    json_text_each(json_text_at(d.after, "sensors.policies"), i, p) {
        json_t *clock = json_object();

        for (size_t k = 0; k < base_array_count(keys); k++) {
            json_object_set(clock, keys[k], json_object_get(p, keys[k]));
        }
        json_array_append_new(clocks, clock);
    }
    return json_pack("{s:o, s:o, s:f, s:o}", "cpu_waited",
                     json_text_number(doctor_waited(&d, "cpu_some_total_us")), "memory_waited",
                     json_text_number(doctor_waited(&d, "memory_some_total_us")), "quota_stopped",
                     doctor_throttled(&d), "clocks", clocks);
}
