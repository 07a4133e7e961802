/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/doctor/facts.h"

#include <math.h>

#include "base/shown_text.h"

#define FRAMES_LEAST 5 /* that a mean is made of */
#define NOTHING 0.005  /* "up to 0 %" */

/* Names of programs and reasons come from anybody; a terminal must not obey them. */
static json_t *clean(const char *text)
{
    char out[DOCTOR_TEXT];

    snprintf(out, sizeof(out), "%s", text);
    shown_clean(out, "");
    return json_string(out);
}

void doctor_find(struct doctor *d, const char *model, double share, const char *advice,
                 const char *format, ...)
{
    char text[DOCTOR_TEXT];
    va_list args;

    if (share == 0) {
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    json_array_append_new(
        d->findings,
        json_pack("{s:s, s:s, s:s?, s:o, s:o, s:o}", "name", d->rule->name, "severity",
                  d->rule->severity, "model", model, "share",
                  isnan(share) ? json_null() : json_real(base_max(base_min(share, 1.0), 0.0)),
                  "text", clean(text), "advice", clean(advice)));
}

const json_t *doctor_model(const struct doctor *d, const json_t *from, const char *key)
{
    return json_text_same(json_object_get(d->after, "models"), "name", json_object_get(from, key));
}

double doctor_more(const json_t *before, const json_t *after, const char *key)
{
    double grown = ctl_value(after, key) - ctl_value(before, key);

    return grown >= 0 ? grown : NAN;
}

/* The model of this name as it was before; NULL: there was none. */
static const json_t *namesake(const struct doctor *d, const json_t *model)
{
    return d->seconds > 0 ? json_text_same(json_object_get(d->before, "models"), "name",
                                           json_object_get(model, "name"))
                          : NULL;
}

bool doctor_loaded_again(const struct doctor *d, const json_t *model)
{
    const json_t *b = namesake(d, model);
    double grown =
        doctor_more(json_object_get(b, "frames"), json_object_get(model, "frames"), "admitted");

    /* no two loads take as long to the nanosecond */
    return b && (!(grown >= 0) || fabs(ctl_value(b, "load_ms") - ctl_value(model, "load_ms")) > 0);
}

/* The model as it was before; NULL: it was not there, or it was loaded again. */
static const json_t *before_of(const struct doctor *d, const json_t *model)
{
    return doctor_loaded_again(d, model) ? NULL : namesake(d, model);
}

double doctor_answered(const struct doctor *d, const json_t *model)
{
    const json_t *now = json_object_get(model, "frames"), *before = before_of(d, model);
    double n = before ? doctor_more(json_object_get(before, "frames"), now, "answered")
                      : ctl_value(now, "answered");

    return d->seconds > 0 && n > 0 ? n : 0;
}

/* The same stage before, if the plan has not changed. */
static const json_t *stage_before(const struct doctor *d, const json_t *model, size_t i)
{
    const json_t *b = before_of(d, model);

    return ctl_value(b, "epoch") == ctl_value(model, "epoch")
               ? json_array_get(json_object_get(b, "stages"), i)
               : NULL;
}

struct doctor_stage doctor_stage_of(const struct doctor *d, const json_t *model, size_t i)
{
    const json_t *now = json_array_get(json_object_get(model, "stages"), i);
    const json_t *before = stage_before(d, model, i);
    double held_s = doctor_more(before, now, "busy_s"), ran_s = doctor_more(before, now, "cpu_s"),
           waited_s = doctor_more(before, now, "waited_s");
    double teams_s = d->seconds * ctl_value(now, "replicas");
    double frames = doctor_more(before, now, "frames");
    struct doctor_stage s = {.status = now,
                             .busy = held_s / teams_s,
                             .off_core = held_s > 0.01 * teams_s ? 1 - ran_s / held_s : NAN,
                             .cpu_ms = frames >= FRAMES_LEAST ? ran_s * 1e3 / frames : NAN,
                             .service_ms = frames >= FRAMES_LEAST ? held_s * 1e3 / frames
                                                                  : ctl_value(now, "service_ms"),
                             .expected_ms = ctl_value(now, "expected_ms")};

    s.busy = teams_s > 0 && s.busy >= 0 ? base_min(s.busy, 1.0) : ctl_value(now, "busy");
    s.off_core = s.off_core < 0 ? 0 : s.off_core;
    s.runs = s.off_core > 0 ? 1 - s.off_core : 1;
    s.waits = waited_s > 0 && held_s >= 0 ? waited_s / (waited_s + held_s) : 0;
    return s;
}

bool doctor_busiest(const struct doctor *d, const json_t *model, struct doctor_stage *ret)
{
    size_t count = json_array_size(json_object_get(model, "stages"));

    for (size_t i = 0; i < count; i++) {
        struct doctor_stage s = doctor_stage_of(d, model, i);

        if (i == 0 || s.busy > ret->busy) {
            *ret = s;
        }
    }
    return count > 0;
}

double doctor_teams(const json_t *model)
{
    double teams = 0;

    json_text_each(json_object_get(model, "stages"), i, s) {
        teams += ctl_real(s, "replicas");
    }
    return teams;
}

bool doctor_has_cpu(const json_t *cpus, json_int_t cpu)
{
    json_text_each(cpus, i, c) {
        if (json_integer_value(c) == cpu) {
            return true;
        }
    }
    return false;
}

/* Return: cores' worth of CPU time that the model's teams took of one core, from 0 to 1. */
static double use_of(const struct doctor *d, const json_t *model, json_int_t cpu)
{
    double use = 0;

    json_text_each(json_object_get(model, "stages"), i, stage) {
        double ran_s = doctor_more(stage_before(d, model, i), stage, "cpu_s");

        if (ran_s > 0 && doctor_has_cpu(json_object_get(stage, "cpus"), cpu)) {
            use += ran_s / (d->seconds * base_max(ctl_value(stage, "replicas"), 1.0));
        }
    }
    return base_min(use, 1.0);
}

double doctor_load_of(const struct doctor *d, const json_t *cpus)
{
    double load = NAN;
    size_t k;

    DOCTOR_EACH_MODEL(d, i, m) {
        for (k = 0; k < json_array_size(json_object_get(m, "stages")); k++) {
            struct doctor_stage s = doctor_stage_of(d, m, k);

            json_text_each(json_object_get(s.status, "cpus"), c, cpu) {
                if (doctor_has_cpu(cpus, json_integer_value(cpu)) && !(load >= s.busy)) {
                    load = isnan(s.busy) ? 0 : s.busy;
                }
            }
        }
    }
    return load;
}

double doctor_contended(const struct doctor *d, const json_t *model, const struct doctor_stage *s,
                        const char **ret_other)
{
    const json_t *cpus = json_object_get(s->status, "cpus");
    double all = 0, most = 0;

    *ret_other = NULL;
    DOCTOR_EACH_MODEL(d, i, m) {
        double use = 0;

        if (strcmp(ctl_text(m, "name"), ctl_text(model, "name")) == 0) {
            continue;
        }
        json_text_each(cpus, c, cpu) {
            use += use_of(d, m, json_integer_value(cpu));
        }
        if (use > most) {
            most = use;
            *ret_other = ctl_text(m, "name");
        }
        all += use;
    }
    /* a team stops while it lacks one of its cores */
    all /= base_max(ctl_value(s->status, "replicas"), 1.0);
    /* what the others ran while this stage held nothing cost it nothing */
    return s->off_core > 0 ? base_min(all, s->off_core) : 0;
}

double doctor_waited(const struct doctor *d, const char *key)
{
    double us = doctor_more(json_text_at(d->before, "sensors.psi"),
                            json_text_at(d->after, "sensors.psi"), key);

    /* a kernel without PSI knows nothing; base_min() would make 1 of that */
    return d->seconds > 0 && !isnan(us) ? base_min(us / 1e6 / d->seconds, 1.0) : NAN;
}

double doctor_throttled(const struct doctor *d)
{
    const json_t *b = json_text_at(d->before, "sensors.cgroup");
    const json_t *a = json_text_at(d->after, "sensors.cgroup");
    double stopped = doctor_more(b, a, "nr_throttled"), periods = doctor_more(b, a, "nr_periods");
    double stopped_s = doctor_more(b, a, "throttled_us") / 1e6;

    /* of the time of all cores that a plan uses; in no more periods than were counted */
    if (!(d->seconds > 0 && stopped_s > 0)) {
        return 0;
    }
    stopped_s /= d->seconds;
    return base_min(stopped_s, periods > 0 ? stopped / periods : 1.0);
}

double doctor_pictures_share(const struct doctor *d, const json_t *model)
{
    const json_t *before = before_of(d, model);
    double in_teams = doctor_more(before, model, "pictures_s");
    double beside = doctor_more(before, model, "pictures_beside_s"), all = 0;

    json_text_each(json_object_get(model, "stages"), i, stage) {
        double held_s = doctor_more(stage_before(d, model, i), stage, "busy_s");

        all += held_s > 0 ? held_s : 0;
    }
    in_teams += beside > 0 ? beside : 0;
    all += beside > 0 ? beside : 0;
    return in_teams > 0 && all > 0 ? base_min(in_teams / all, 1.0) : 0;
}

double doctor_pictures_busy(const struct doctor *d, const json_t *model)
{
    double beside_s = doctor_more(before_of(d, model), model, "pictures_beside_s");
    struct doctor_stage s = {.busy = NAN};

    doctor_busiest(d, model, &s);
    return beside_s > 0 ? s.busy + beside_s / d->seconds : s.busy;
}

double doctor_winnable(double share, double busy)
{
    share = busy < share ? busy : share;
    return share < NOTHING ? 0 : share;
}

bool doctor_is_aside(const struct doctor *d, const json_t *model)
{
    return doctor_answered(d, model) == 0 &&
           json_array_size(json_object_get(d->after, "models")) > 1;
}
