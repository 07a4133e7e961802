/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/doctor/sample.h"

#include "apps/pipectl/doctor/doctor.h"

#define EVENTS 200 /* newest of the history */

/* Asks for one field of an answer. @parameters: taken. Return: an exit code. */
static int ask(const struct ctl *ctl, const char *method, json_t *parameters, const char *field,
               json_t *to, const char *key)
{
    json_t *reply;
    int rc = ctl_call(ctl, method, parameters, &reply);

    if (rc == CTL_DONE) {
        json_object_set(to, key, json_object_get(reply, field));
        json_decref(reply);
    }
    return rc;
}

/* Of each model of the newest status. */
static int ask_models(const struct ctl *ctl, json_t *sample)
{
    json_t *units = json_object(), *explanations = json_object(), *m;
    int rc = CTL_DONE;
    size_t i;

    json_object_set_new(sample, "units", units);
    json_object_set_new(sample, "explanations", explanations);
    json_array_foreach(json_object_get(json_object_get(sample, "after"), "models"), i, m)
    {
        const char *name = ctl_text(m, "name");

        rc = rc ? rc : ask(ctl, "Units", ctl_model_parameter(name), "units", units, name);
        rc = rc ? rc
                : ask(ctl, "PlanExplain", ctl_model_parameter(name), "explanation", explanations,
                      name);
    }
    return rc;
}

/* Numbers of policies whose governor nobody here can write: sysfs is read-only in a container. */
static json_t *read_only_policies(const json_t *status)
{
    json_t *list = json_array(), *p;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(status, "sensors"), "policies"), i, p)
    {
        json_int_t number = json_integer_value(json_object_get(p, "policy"));
        char path[128];

        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpufreq/policy%lld/scaling_governor",
                 (long long)number);
        if (access(path, W_OK) < 0 && errno == EROFS) {
            json_array_append_new(list, json_integer(number));
        }
    }
    return list;
}

static void sleep_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    while (nanosleep(&left, &left) < 0 && errno == EINTR) {
    }
}

static void add_programs(json_t *sample, const json_t *before, const json_t *after)
{
    const json_t *status = json_object_get(sample, "after");
    double all_s = ctl_real(after, "all_s") - ctl_real(before, "all_s");

    json_object_set_new(
        sample, "programs",
        doctor_programs_between(before, after, doctor_seconds(sample),
                                json_integer_value(json_object_get(status, "pid"))));
    if (all_s > 0) {
        json_object_set_new(
            sample, "steal",
            json_real((ctl_real(after, "steal_s") - ctl_real(before, "steal_s")) / all_s));
    }
}

/* Asks for the status as the sample's @key. */
static int look(const struct ctl *ctl, const struct doctor_watch *w, json_t *sample,
                const char *key)
{
    int rc = ask(ctl, "Status", ctl_model_parameter(w->model), "status", sample, key);

    if (rc == CTL_DONE && w->see) {
        w->see(w->context, json_object_get(sample, key));
    }
    return rc;
}

/* Looks again and again until the time is over; the last one is "after". */
static int watch(const struct ctl *ctl, const struct doctor_watch *w, json_t *sample)
{
    uint64_t begun = base_now_ns();
    double passed = 0;
    int rc = CTL_DONE;

    while (rc == CTL_DONE && passed < w->seconds) {
        double left = w->seconds - passed;

        sleep_for(w->every_s > 0 && w->every_s < left ? w->every_s : left);
        passed = (double)(base_now_ns() - begun) / 1e9;
        rc = look(ctl, w, sample, "after");
    }
    return rc;
}

int doctor_sample(const struct ctl *ctl, const struct doctor_watch *w, json_t **ret)
{
    json_t *sample = json_object(), *before = doctor_programs(), *after = NULL;
    json_t *limit = json_pack("{s:i}", "limit", EVENTS);
    int rc = look(ctl, w, sample, "before");

    rc = rc ? rc : watch(ctl, w, sample);
    after = doctor_programs();
    rc = rc ? rc : ask(ctl, "Models", json_object(), "models", sample, "models");
    rc = rc ? rc : ask(ctl, "Config", json_object(), "config", sample, "config");
    rc = rc ? rc : ask(ctl, "History", json_incref(limit), "events", sample, "events");
    rc = rc ? rc : ask_models(ctl, sample);
    if (rc == CTL_DONE) {
        add_programs(sample, before, after);
        json_object_set_new(sample, "read_only",
                            read_only_policies(json_object_get(sample, "after")));
        *ret = json_incref(sample);
    }
    json_decref(limit);
    json_decref(before);
    json_decref(after);
    json_decref(sample);
    return rc;
}
