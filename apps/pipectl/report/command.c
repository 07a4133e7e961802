/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl report: gathers what the daemon says over some seconds, and writes it as a page. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/doctor/doctor.h"
#include "apps/pipectl/doctor/sample.h"
#include "apps/pipectl/report/page.h"
#include "apps/show/fold_segments.h"
#include "base/cli/shown_print.h"
#include "base/json_text.h"

#define MOMENTS 120   /* at most, in a curve over time */
#define EVERY_S 0.25  /* at least, between two of them */
#define FRONT_MOST 64 /* plans */

struct args {
    const char *file, *model;
    double seconds;
};

static int take_args(int argc, char **argv, struct args *ret)
{
    int c, rc = CTL_DONE;

    *ret = (struct args){.seconds = 5};
    while ((c = ctl_option(argc, argv, &rc, NULL)) != -1) {
        if (c == 'm') {
            ret->model = optarg;
        } else if (c == 'o') {
            ret->file = optarg;
        } else if (!ctl_number(optarg, 0.1, 3600, &ret->seconds)) {
            return ctl_usage(argv[0], "--seconds needs seconds from 0.1 to 3600, not '%s'", optarg);
        }
    }
    rc = rc ? rc : ctl_no_more(argc, argv);
    if (rc == CTL_DONE && !ret->file) {
        return ctl_usage(argv[0], "say where to write the page: -o FILE.html");
    }
    return rc;
}

static int add_metrics(const struct ctl *ctl, json_t *data, const char *when)
{
    json_t *reply;
    int rc = ctl_call(ctl, "Metrics", json_object(), &reply);

    if (rc == CTL_DONE) {
        json_object_set_new(json_object_get(data, "metrics"), when,
                            report_metrics(ctl_text(reply, "text")));
        json_decref(reply);
    }
    return rc;
}

static int add_fronts(const struct ctl *ctl, json_t *data, const json_t *status)
{
    json_t *fronts = json_object(), *m;
    int rc = CTL_DONE;
    size_t i;

    json_object_set_new(data, "fronts", fronts);
    json_array_foreach(json_object_get(status, "models"), i, m)
    {
        json_t *reply, *parameters = ctl_model_parameter(ctl_text(m, "name"));

        json_object_set_new(parameters, "max", json_integer(FRONT_MOST));
        rc = ctl_call(ctl, "PlanFront", parameters, &reply);
        if (rc) {
            break;
        }
        json_object_set(fronts, ctl_text(m, "name"), json_object_get(reply, "front"));
        json_decref(reply);
    }
    return rc;
}

/* The objects of @list with only these keys; NULL ends them. */
static json_t *only(const json_t *list, const char *const *keys)
{
    json_t *ret = json_array(), *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        json_t *o = json_object();

        for (const char *const *key = keys; *key; key++) {
            json_object_set(o, *key, json_object_get(one, *key));
        }
        json_array_append_new(ret, o);
    }
    return ret;
}

/* Return: new: what curves over time need of an answer of Status: {s, models: {MODEL: {answered,
 * p50, p99}}, policies, thermal, cpu_waited_us}. */
static json_t *moment_of(const json_t *status)
{
    static const char *const policy[] = {"policy", "cpus", "freq_khz", "limit_khz", NULL};
    static const char *const zone[] = {"zone", "type", "temp_c", NULL};
    const json_t *sensors = json_object_get(status, "sensors"), *m;
    json_t *models = json_object();
    size_t i;

    json_array_foreach(json_object_get(status, "models"), i, m)
    {
        json_object_set_new(
            models, ctl_text(m, "name"),
            json_pack("{s:O?, s:O?, s:O?}", "answered", page_at(m, "frames.answered"), "p50",
                      page_at(m, "latency_ms.p50"), "p99", page_at(m, "latency_ms.p99")));
    }
    return json_pack("{s:O?, s:o, s:o, s:o, s:O?}", "s", json_object_get(status, "uptime_s"),
                     "models", models, "policies",
                     only(json_object_get(sensors, "policies"), policy), "thermal",
                     only(json_object_get(sensors, "thermal"), zone), "cpu_waited_us",
                     page_at(sensors, "psi.cpu_some_total_us"));
}

static void see(void *context, const json_t *status)
{
    json_array_append_new(context, moment_of(status));
}

static void add_where_and_when(json_t *data)
{
    char host[128] = "", at[32];
    time_t now = time(NULL);
    struct tm utc;

    gethostname(host, sizeof(host) - 1);
    gmtime_r(&now, &utc);
    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_object_set_new(data, "host", json_string(host));
    json_object_set_new(data, "at", json_string(at));
}

/* What is judged from the sample. The configuration is not written: it may hold secrets. */
static void judge(json_t *data, json_t *sample)
{
    json_object_set_new(data, "findings", doctor_judge(sample));
    shw_fold_segments(sample);
    shw_fold_segments(json_object_get(sample, "before"));
    shw_fold_segments(json_object_get(sample, "after"));
    json_object_set_new(data, "figures", doctor_figures(sample));
    json_object_set_new(data, "stages", doctor_stages(sample));
    json_object_set_new(data, "machine", doctor_machine(sample));
    json_object_set_new(data, "seconds", json_real(doctor_seconds(sample)));
    json_object_del(sample, "config");
    json_object_set(data, "sample", sample);
}

static int gather(const struct ctl *ctl, const struct args *a, json_t **ret)
{
    json_t *series = json_array(), *sample = NULL;
    json_t *data = json_pack("{s:o, s:{}}", "series", series, "metrics");
    struct doctor_watch watch = {.model = a->model,
                                 .seconds = a->seconds,
                                 .every_s = base_max(EVERY_S, a->seconds / MOMENTS),
                                 .see = see,
                                 .context = series};
    int rc = add_metrics(ctl, data, "before");

    rc = rc ? rc : doctor_sample(ctl, &watch, &sample);
    rc = rc ? rc : add_metrics(ctl, data, "after");
    rc = rc ? rc : add_fronts(ctl, data, json_object_get(sample, "after"));
    if (rc == CTL_DONE) {
        add_where_and_when(data);
        judge(data, sample);
        *ret = json_incref(data);
    }
    json_decref(sample);
    json_decref(data);
    return rc;
}

int ctl_report(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl page = *ctl;
    json_t *data = NULL;
    struct args a;
    int rc = take_args(argc, argv, &a);

    page.page = true;
    rc = rc ? rc : gather(&page, &a, &data);
    rc = rc ? rc : ctl_save_page(a.file, report_write, data);
    if (rc == CTL_DONE && ctl->json) {
        json_t *v =
            json_pack("{s:o, s:b, s:b, s:O}", "file", json_text_path(a.file), "charts",
                      page_has_charts(), "well", doctor_is_well(json_object_get(data, "findings")),
                      "seconds", json_object_get(data, "seconds"));

        ctl_print_json(v);
        json_decref(v);
    } else if (rc == CTL_DONE) {
        shown_printf("wrote %s\n", a.file);
    }
    json_decref(data);
    return rc;
}
