/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/report/page.h"

#include <math.h>

#include "apps/pipectl/doctor/doctor.h"
#include "apps/show/fold_segments.h"

static void tile(FILE *to, const json_t *object, const char *key, const char *format,
                 const char *what)
{
    fputs("<div><b>", to);
    page_text(to, ctl_known(object, key, format).text);
    fprintf(to, "</b><span>%s</span></div>", what);
}

/* The figures of each model that one looks for first. One that has had no frame has none. */
static void write_tiles(const struct report *r)
{
    const json_t *figures;

    REPORT_EACH_MODEL(r, i, m) {
        figures = json_array_get(json_object_get(r->data, "figures"), i);
        page_heading(r->to, 3, "%s", ctl_text(m, "name"));
        if (ctl_value(m, "frames.admitted") == 0) {
            page_paragraph(r->to, "quiet", "No frame since it was loaded.");
            continue;
        }
        fputs("<div class=\"tiles\">", r->to);
        tile(r->to, figures, "fps", "%.1f", "frames/s while watched");
        tile(r->to, figures, "p50_ms", "%.2f", "ms, median latency");
        tile(r->to, figures, "p99_ms", "%.2f", "ms, 99 % are faster");
        tile(r->to, json_object_get(m, "frames"), "answered", "%.0f", "frames answered");
        tile(r->to, json_object_get(m, "frames"), "dropped", "%.0f", "dropped");
        tile(r->to, json_object_get(m, "frames"), "failed", "%.0f", "failed");
        fputs("</div>\n<p>Plan <code>", r->to);
        page_text(r->to, ctl_text(m, "plan"));
        fputs("</code></p>\n", r->to);
    }
}

static void write_finding(FILE *to, const json_t *f)
{
    const json_t *model = json_object_get(f, "model");
    double share = ctl_value(f, "share");

    fprintf(to, "<li class=\"%s\"><b>", ctl_text(f, "severity"));
    page_text(to, ctl_text(f, "name"));
    if (!isnan(share)) {
        fprintf(to, ", up to %.0f %%", 100 * share);
    }
    fputs(json_is_string(model) ? ", model " : "", to);
    page_text(to, json_is_string(model) ? json_string_value(model) : "");
    fputs("</b>", to);
    page_text(to, ctl_text(f, "text"));
    fputs("<br><span class=\"quiet\">", to);
    page_text(to, ctl_text(f, "advice"));
    fputs("</span></li>\n", to);
}

static void write_findings(const struct report *r)
{
    const json_t *findings = json_object_get(r->data, "findings");

    page_fold_begin(r->to, "findings", true, "Findings");
    if (doctor_is_well(findings)) {
        page_paragraph(r->to, "good", "All is well%s",
                       json_array_size(findings) ? "; notes:" : ".");
    }
    fputs("<ol class=\"findings\">\n", r->to);
    json_text_each(findings, i, f) {
        write_finding(r->to, f);
    }
    fputs("</ol>\n", r->to);
    page_fold_end(r->to);
}

static void write_served(const struct report *r)
{
    static const struct page_column models[] = {
        {"model", "name", PAGE_TEXT},
        {"units", "units", PAGE_NUMBER},
        {"million MACs", "macs", PAGE_NUMBER, 1, 1e-6},
        {"input", "input.shape", PAGE_NUMBER},
        {"type", "input.dtype", PAGE_TEXT},
        {"weights, MB", "weight_bytes", PAGE_NUMBER, 2, 1e-6},
        {"packed, MB", "packed_bytes", PAGE_NUMBER, 2, 1e-6},
        {"arenas, MB", "arena_bytes", PAGE_NUMBER, 2, 1e-6},
        {"load, ms", "load_ms", PAGE_NUMBER, 1},
        {"file", "path", PAGE_CODE},
        {0}};
    static const struct page_column failed[] = {{"model", "name", PAGE_TEXT},
                                                {"file", "path", PAGE_CODE},
                                                {"why", "error", PAGE_TEXT},
                                                {0}};
    const json_t *memory = json_object_get(r->after, "memory");
    const json_t *wrong = json_object_get(r->after, "failed_models");
    char text[SHW_SEGMENT_BYTES];

    page_fold_begin(r->to, "served", false, "What is served");
    page_table(r->to, "Models", models, json_object_get(r->sample, "models"));
    json_text_each(json_object_get(r->after, "segments"), i, segment) {
        shw_segment_text(segment, text);
        page_paragraph(r->to, NULL, "Computed here: %s, by plan %s, %.1f frames a second.", text,
                       ctl_text(segment, "plan"), ctl_real(segment, "fps"));
    }
    if (json_array_size(wrong) > 0) {
        page_table(r->to, "Models that could not be loaded", failed, wrong);
    }
    page_paragraph(r->to, NULL,
                   "The process has %.1f MB in memory, at most %.1f MB so far. Weights take %.1f "
                   "MB as loaded and %.1f MB as packed, arenas %.1f MB.",
                   ctl_real(memory, "resident_bytes") / 1e6, ctl_real(memory, "peak_bytes") / 1e6,
                   ctl_real(memory, "weight_bytes") / 1e6, ctl_real(memory, "packed_bytes") / 1e6,
                   ctl_real(memory, "arena_bytes") / 1e6);
    page_fold_end(r->to);
}

/* Were frames of any model answered meanwhile? */
static bool has_frames(const json_t *data)
{
    json_text_each(json_object_get(data, "figures"), i, m) {
        if (ctl_value(m, "fps") > 0) {
            return true;
        }
    }
    return false;
}

static void add_section(json_t *sections, const char *id, const char *title)
{
    json_array_append_new(sections, json_pack("{s:s, s:s}", "id", id, "title", title));
}

static const char *model_id(size_t i, char ret[32])
{
    snprintf(ret, 32, "model-%zu", i);
    return ret;
}

static void write_contents(const struct report *r)
{
    json_t *sections = json_array();
    char id[32];

    add_section(sections, "findings", "Findings");
    add_section(sections, "served", "What is served");
    add_section(sections, "speed", "How fast");
    REPORT_EACH_MODEL(r, i, m) {
        add_section(sections, model_id(i, id), ctl_text(m, "name"));
    }
    add_section(sections, "history", "History");
    add_section(sections, "machine", "What the machine did");
    page_contents(r->to, sections);
}

/* Unfolded if it is the only one. */
static void write_model(const struct report *r, size_t i, const json_t *model)
{
    char id[32], title[300];

    snprintf(title, sizeof(title), "Stages, units and plans of %.200s", ctl_text(model, "name"));
    page_fold_begin(r->to, model_id(i, id),
                    json_array_size(json_object_get(r->after, "models")) == 1, title);
    report_model(r, i, model);
    report_plans(r, i, model);
    page_fold_end(r->to);
}

void report_write(FILE *to, const json_t *data)
{
    const json_t *sample = json_object_get(data, "sample");
    struct report r = {.to = to,
                       .data = data,
                       .sample = sample,
                       .after = json_object_get(sample, "after"),
                       .series = json_object_get(data, "series"),
                       .frames = has_frames(data)};
    char title[256];

    snprintf(title, sizeof(title), "piped on %s", ctl_text(data, "host"));
    page_begin(to, title);
    page_paragraph(to, "quiet",
                   "Version %s, %s, up for %.0f s. Watched for %.1f s until %s; times are UTC.",
                   ctl_text(r.after, "version"), ctl_text(r.after, "state"),
                   ctl_real(r.after, "uptime_s"), ctl_real(data, "seconds"), ctl_text(data, "at"));
    if (!page_has_charts()) {
        page_paragraph(to, "warn", "%s.", PAGE_NO_CHARTS);
    }
    write_contents(&r);
    write_tiles(&r);
    write_findings(&r);
    write_served(&r);
    report_speed(&r);
    REPORT_EACH_MODEL(&r, i, m) {
        write_model(&r, i, m);
    }
    report_history(&r);
    report_machine(&r);
    page_data(to, "report", data);
    page_end(to);
}
