/* SPDX-License-Identifier: Apache-2.0 */
/* How fast: rates and latency over the time that was watched, histograms, and where the time of a
 * frame goes. */
#include <math.h>

#include "apps/pipectl/report/page.h"

#define BUCKETS_MAX 64u
#define STAGES_MAX 64u

static void draw_rates(const struct report *r)
{
    json_t *chart = report_time_chart(r, "rates", "Frames answered a second", "frames/s");

    REPORT_EACH_MODEL(r, k, m) {
        struct report_value answered = {"models", ctl_text(m, "name"), 0, "answered", 1};

        page_lines(chart, answered.name, report_rate(r, &answered, INFINITY), NULL);
    }
    page_chart(r->to, chart);
}

static void draw_latency(const struct report *r)
{
    static const char *const QUANTILES[] = {"p50", "p99"};
    json_t *chart = report_time_chart(
        r, "latency", "Latency of the newest answers: median and 99th percentile", "ms");

    REPORT_EACH_MODEL(r, k, m) {
        for (size_t q = 0; q < 2; q++) {
            struct report_value ms = {"models", ctl_text(m, "name"), 0, QUANTILES[q], 1};
            char label[300];

            snprintf(label, sizeof(label), "%.200s %s", ms.name, QUANTILES[q]);
            page_lines(chart, label, report_curve(r, &ms),
                       json_pack("{s:i, s:b}", "colour", (int)k, "dashed", (int)q));
        }
    }
    page_chart(r->to, chart);
}

static const json_t *metrics_of(const struct report *r, const char *when, const char *model)
{
    return json_object_get(json_text_at(json_object_get(r->data, "metrics"), when), model);
}

/* How much a number of the metrics grew while watching, or all of it if no frame came then. */
static double grown(const struct report *r, const json_t *m, const char *path)
{
    const char *name = ctl_text(m, "name");
    double was = r->frames ? ctl_value(metrics_of(r, "before", name), path) : 0;

    return ctl_value(metrics_of(r, "after", name), path) - (isnan(was) ? 0 : was);
}

/* Frames in each bucket. Return: their number; 0: unknown, or none came. */
static double buckets(const struct report *r, const json_t *m, const char *family,
                      double ret[BUCKETS_MAX])
{
    const char *name = ctl_text(m, "name");
    const json_t *now = json_text_at(metrics_of(r, "after", name), family);
    const json_t *was = r->frames ? json_text_at(metrics_of(r, "before", name), family) : NULL;
    double up_to = 0, all = 0;

    for (size_t i = 0; i < BUCKETS_MAX; i++) {
        double count = json_number_value(json_array_get(json_object_get(now, "count"), i)) -
                       json_number_value(json_array_get(json_object_get(was, "count"), i));

        ret[i] = i < json_array_size(json_object_get(now, "count")) ? count - up_to : 0;
        up_to += ret[i];
        all += ret[i];
    }
    return all;
}

/* One histogram a model, or for one model its queue and computing, too. */
static void draw_histogram(const struct report *r)
{
    static const char *const FAMILIES[] = {"latency", "queue", "compute"};
    static const char *const NAMES[] = {"latency", "waited for the first stage",
                                        "from the first stage on"};
    size_t models = json_array_size(json_object_get(r->after, "models"));
    json_t *x = json_pack("{s:s, s:[]}", "label", "ms, at most", "names");
    json_t *chart =
        page_new("histogram",
                 r->frames ? "How long the frames took that were answered while watching"
                           : "How long frames took since their model was loaded",
                 "bars", x, page_axis("% of frames", false, 0, NAN));
    size_t first = BUCKETS_MAX, last = 0, shown = models == 1 ? 3 : 1;
    const json_t *le = NULL;
    double n[BUCKETS_MAX];

    for (int pass = 0; pass < 2; pass++) {
        REPORT_EACH_MODEL(r, k, m) {
            for (size_t f = 0; f < shown; f++) {
                double all = buckets(r, m, FAMILIES[f], n);
                json_t *values = pass ? json_array() : NULL;

                le = json_text_at(metrics_of(r, "after", ctl_text(m, "name")), "latency.le");
                for (size_t i = pass ? first : 0; i <= (pass ? last : BUCKETS_MAX - 1); i++) {
                    if (pass) {
                        json_array_append_new(values, json_text_number(100 * n[i] / all));
                    } else if (n[i] > 0) {
                        first = i < first ? i : first;
                        last = i > last ? i : last;
                    }
                }
                if (values && all > 0) {
                    page_add(chart, page_bars(shown > 1 ? NAMES[f] : ctl_text(m, "name"), values));
                } else {
                    json_decref(values);
                }
            }
        }
    }
    for (size_t i = first; i <= last; i++) {
        json_array_append_new(json_object_get(x, "names"),
                              json_sprintf("%.4g", 1e3 * json_number_value(json_array_get(le, i))));
    }
    page_chart(r->to, chart);
}

/* Mean time of the units of a stage in a frame, ms. The metrics leave out units that ran in one
 * frame only, and all of them where there are very many: those are as pipectl units shows them. */
static double units_ms(const struct report *r, const json_t *m, const json_t *stage)
{
    const json_t *known = json_object_get(json_object_get(r->sample, "units"), ctl_text(m, "name"));
    const char *units = ctl_text(stage, "units");
    char *end;
    unsigned long first = strtoul(units, &end, 10);
    unsigned long last = *end == '-' ? strtoul(end + 1, NULL, 10) : first;
    double ms = 0;

    for (unsigned long u = first; u <= last; u++) {
        char sum[48], frames[48];

        snprintf(sum, sizeof(sum), "units.%lu.sum", u);
        snprintf(frames, sizeof(frames), "units.%lu.frames", u);
        double count = grown(r, m, frames);

        double shown = ctl_value(json_array_get(known, u), "ewma_ms");

        ms += count > 0 ? 1e3 * grown(r, m, sum) / count : shown > 0 ? shown : 0;
    }
    return ms;
}

/* Mean times in a frame, ms. */
struct parts {
    double waiting, preparing, stage[STAGES_MAX], between;
    size_t stages;
};

/* Units of another time than the frames may say more than all took: then they were all of it. */
static void bound_stages(struct parts *p, double compute)
{
    double units = 0;

    for (size_t i = 0; i < p->stages; i++) {
        units += p->stage[i];
    }
    for (size_t i = 0; units > compute && i < p->stages; i++) {
        p->stage[i] *= compute / units;
    }
    p->between = base_max(compute - units, 0.0);
}

/* Return: whether frames came. */
static bool parts_of(const struct report *r, const json_t *m, struct parts *ret)
{
    double frames = grown(r, m, "latency.frames");

    *ret = (struct parts){0};
    if (!(frames > 0)) {
        return false;
    }
    ret->preparing = 1e3 * grown(r, m, "preparing.sum") / frames;
    ret->preparing = ret->preparing > 0 ? ret->preparing : 0;
    ret->waiting = 1e3 * grown(r, m, "queue.sum") / frames - ret->preparing;
    json_text_each(json_object_get(m, "stages"), i, stage) {
        /* A stage has a row for each EP; its frames go through one of them. */
        double number = ctl_value(stage, "stage");

        if (number >= 0 && number < STAGES_MAX) {
            ret->stage[(size_t)number] = units_ms(r, m, stage);
            ret->stages = (size_t)number + 1;
        }
    }
    bound_stages(ret, 1e3 * grown(r, m, "compute.sum") / frames);
    return true;
}

static void draw_time(const struct report *r)
{
    json_t *x = json_pack("{s:s, s:[]}", "label", "model", "names");
    json_t *chart = page_new("time", "Where the time of a frame goes, mean", "bars", x,
                             page_axis("ms", false, 0, NAN));
    json_t *waiting = json_array(), *preparing = json_array(), *between = json_array();
    json_t *stages = json_array(); /* of values, one list a stage */
    struct parts p;
    size_t rows = 0, most = 0;
    bool prepared = false;

    REPORT_EACH_MODEL(r, k, m) {
        most = parts_of(r, m, &p) && p.stages > most ? p.stages : most;
    }
    for (size_t i = 0; i < most; i++) {
        json_array_append_new(stages, json_array());
    }
    REPORT_EACH_MODEL(r, k, m) {
        if (!parts_of(r, m, &p)) {
            continue;
        }
        rows++;
        json_array_append(json_object_get(x, "names"), json_object_get(m, "name"));
        json_array_append_new(waiting, json_real(p.waiting));
        json_array_append_new(preparing, json_real(p.preparing));
        json_array_append_new(between, json_real(p.between));
        prepared = prepared || p.preparing > 0;
        json_text_each(stages, i, values) {
            json_array_append_new(values, i < p.stages ? json_real(p.stage[i]) : json_null());
        }
    }
    page_add(chart, page_bars("waits for the first stage", waiting));
    if (prepared) {
        page_add(chart, page_bars("a large image is shrunk", json_incref(preparing)));
    }
    json_text_each(stages, i, values) {
        json_t *s = json_pack("{s:o, s:O}", "name", json_sprintf("units of stage %zu", i), "values",
                              values);

        page_add(chart, s);
    }
    page_add(chart, page_bars("between stages, and off its cores", between));
    json_object_set_new(chart, "stacked", json_true());
    json_object_set_new(chart, "across", json_true());
    json_decref(preparing);
    json_decref(stages);
    page_chart(r->to, chart);
    if (rows > 0) {
        page_paragraph(r->to, "quiet",
                       "%s. Between stages, and off its cores: handing over, waiting for the next "
                       "team, and time in which a team lacked a core.",
                       r->frames
                           ? "Of the frames answered while watching"
                           : "Of all frames since the load, because none came while watching");
    }
}

/* The models of the status, without the latency (0) of those that have answered nothing. New. */
static json_t *answering(const struct report *r)
{
    json_t *models = json_deep_copy(json_object_get(r->after, "models"));

    json_text_each(models, i, m) {
        if (!(ctl_value(m, "frames.answered") > 0)) {
            json_object_del(m, "latency_ms");
        }
    }
    return models;
}

static void write_figures(const struct report *r)
{
    static const struct page_column columns[] = {
        {"model", "name", PAGE_TEXT},
        {"frames/s", "fps", PAGE_NUMBER, 1},
        {"p50, ms", "latency_ms.p50", PAGE_NUMBER, 2},
        {"p95, ms", "latency_ms.p95", PAGE_NUMBER, 2},
        {"p99, ms", "latency_ms.p99", PAGE_NUMBER, 2},
        {"most, ms", "latency_ms.max", PAGE_NUMBER, 2},
        {"admitted", "frames.admitted", PAGE_NUMBER},
        {"answered", "frames.answered", PAGE_NUMBER},
        {"dropped", "frames.dropped", PAGE_NUMBER},
        {"failed", "frames.failed", PAGE_NUMBER},
        {"late", "frames.late", PAGE_NUMBER},
        {"to have, frames/s", "wishes.rate", PAGE_NUMBER, 1},
        {"in flight", "in_flight", PAGE_NUMBER},
        {"waiting", "waiting", PAGE_NUMBER},
        {0}};
    static const struct page_column refusals[] = {{"client", "client", PAGE_TEXT},
                                                  {"what", "what", PAGE_TEXT},
                                                  {"status", "status", PAGE_TEXT},
                                                  {"why", "why", PAGE_TEXT},
                                                  {"count", "count", PAGE_NUMBER},
                                                  {"s ago", "ago_s", PAGE_NUMBER},
                                                  {0}};

    json_auto_t *models = answering(r);

    page_table(r->to, "As pipectl status tells them, at the end", columns, models);
    if (json_array_size(json_object_get(r->after, "refusals")) > 0) {
        page_table(r->to, "Refused, dropped or late", refusals,
                   json_object_get(r->after, "refusals"));
    }
}

static void write_mix(const struct report *r)
{
    static const struct page_column columns[] = {
        {"model", "model", PAGE_TEXT},
        {"to have, frames/s", "wished", PAGE_NUMBER, 1},
        {"planned, frames/s", "rate", PAGE_NUMBER, 1},
        {"each within, ms", "served_bound_ms", PAGE_NUMBER, 1},
        {"of all cores' time, %", "share", PAGE_NUMBER, 0, 100},
        {"of what limits the plan, %", "costs", PAGE_NUMBER, 0, 100},
        {0}};
    const json_t *mix = json_object_get(r->after, "mix");

    if (json_is_object(mix)) {
        page_table(r->to, "By one plan for all models", columns, json_object_get(mix, "models"));
        page_paragraph(r->to, NULL, "%s %s", ctl_mix_reaches(mix).text, ctl_mix_keeps(mix).text);
    }
}

void report_speed(const struct report *r)
{
    page_fold_begin(r->to, "speed", true, "How fast");
    write_figures(r);
    write_mix(r);
    draw_rates(r);
    draw_latency(r);
    draw_histogram(r);
    draw_time(r);
    page_fold_end(r->to);
}
