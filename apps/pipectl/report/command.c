/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl report: gathers what the daemon says over some seconds, and writes it as a page. */
#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/doctor/doctor.h"
#include "apps/pipectl/report/page.h"
#include "apps/show/fold_segments.h"

#define MOMENTS 120   /* at most, in a curve over time */
#define EVERY_S 0.25  /* at least, between two of them */
#define FRONT_MOST 64 /* plans */

static int add_metrics(const struct ctl *ctl, json_t *data, const char *when)
{
    json_auto_t *text = NULL;
    int rc = ctl_ask(ctl, "Metrics", json_object(), "text", &text);

    json_object_set_new(json_object_get(data, "metrics"), when,
                        report_metrics(json_string_value(text)));
    return rc;
}

static int add_fronts(const struct ctl *ctl, json_t *data, const json_t *status)
{
    json_t *fronts = json_object(), *front;
    int rc = CTL_DONE;

    json_object_set_new(data, "fronts", fronts);
    json_text_each(json_object_get(status, "models"), i, m) {
        json_t *parameters = ctl_model_parameter(ctl_text(m, "name"));

        json_object_set_new(parameters, "max", json_integer(FRONT_MOST));
        rc = ctl_ask(ctl, "PlanFront", parameters, "front", &front);
        json_object_set_new(fronts, ctl_text(m, "name"), front);
        if (rc) {
            break;
        }
    }
    return rc;
}

/* The objects of @list with only these keys; NULL ends them. */
static json_t *only(const json_t *list, const char *const *keys)
{
    json_t *ret = json_array();

    json_text_each(list, i, one) {
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
    json_t *models = json_object();

    json_text_each(json_object_get(status, "models"), i, m) {
        /* the latency (0) of those that have answered nothing is not known */
        const json_t *ms = ctl_real(m, "frames.answered") > 0 ? m : NULL;

        json_object_set_new(models, ctl_text(m, "name"),
                            json_pack("{s:O?, s:O?, s:O?}", "answered",
                                      json_text_at(m, "frames.answered"), "p50",
                                      json_text_at(ms, "latency_ms.p50"), "p99",
                                      json_text_at(ms, "latency_ms.p99")));
    }
    return json_pack("{s:O?, s:o, s:o, s:o, s:O?}", "s", json_object_get(status, "uptime_s"),
                     "models", models, "policies",
                     only(json_text_at(status, "sensors.policies"), policy), "thermal",
                     only(json_text_at(status, "sensors.thermal"), zone), "cpu_waited_us",
                     json_text_at(status, "sensors.psi.cpu_some_total_us"));
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

static int gather(const struct ctl *ctl, const struct ctl_options *o, json_t **ret)
{
    json_t *series = json_array();
    json_auto_t *data = json_pack("{s:o, s:{}}", "series", series, "metrics"), *sample = NULL;
    struct doctor_watch watch = {.model = o->model,
                                 .seconds = o->seconds,
                                 .every_s = base_max(EVERY_S, o->seconds / MOMENTS),
                                 .see = see,
                                 .context = series};
    int rc = add_metrics(ctl, data, "before");

    rc = rc ? rc : doctor_sample(ctl, &watch, &sample);
    rc = rc ? rc : add_metrics(ctl, data, "after");
    rc = rc ? rc : add_fronts(ctl, data, json_object_get(sample, "after"));
    if (rc == CTL_DONE) {
        add_where_and_when(data);
        judge(data, sample);
        *ret = base_take(data);
    }
    return rc;
}

int ctl_report(const struct ctl *ctl, int argc, char **argv)
{
    struct ctl page = *ctl;
    json_auto_t *data = NULL, *v = NULL;
    struct ctl_options o = {.seconds = 5};
    int rc = ctl_take_all(argc, argv, &o, NULL);

    if (rc == CTL_DONE && !o.output) {
        return ctl_usage(argv[0], "say where to write the page: -o FILE.html");
    }
    page.page = true;
    rc = rc ? rc : gather(&page, &o, &data);
    rc = rc ? rc : ctl_save_page(o.output, report_write, data);
    if (rc == CTL_DONE) {
        v = json_pack("{s:o, s:b, s:b, s:O}", "file", json_text_path(o.output), "charts",
                      page_has_charts(), "well", doctor_is_well(json_object_get(data, "findings")),
                      "seconds", json_object_get(data, "seconds"));
        ctl_tell(ctl, v, "wrote %s\n", o.output);
    }
    return rc;
}
