/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the Pipe-search paper, and the throughput-latency front. */
#include <math.h>

#include "base/base.h"
#include "tuner/pipesim/report.h"
#include "tuner/pipesim/subject.h"
#include "tuner/solve/solve.h"

int psim_report_timeline(struct psim_report *r)
{
    static const char *const STAGES[] = {"2 stages", "3 stages", "4 stages"};
    struct tun_options options = {.alpha = 15}; /* the paper's figure 3 */
    json_t *chart, *points[base_array_count(STAGES)];
    size_t large[base_array_count(STAGES)];
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    base_cleanup(psim_run_deinit) struct psim_run run = {0};
    int error = psim_case_init("synth2", PSIM_UNITS, "tx2-3", r->error, &c);

    error = error ? error : psim_case_run(r, &c, "pipe-search", &options, &run);
    if (error) {
        return error;
    }
    for (size_t s = 0; s < base_array_count(STAGES); s++) {
        points[s] = json_array();
        large[s] = SIZE_MAX;
    }
    for (size_t i = 0; i < run.count; i++) {
        const struct tun_trial *t = &run.log[i];
        size_t s = t->plan.stage_count - 2;
        char text[PL_PLAN_TEXT_MAX], note[PL_PLAN_TEXT_MAX + 64];

        if (s >= base_array_count(STAGES)) {
            continue;
        }
        tun_plan_text(&c.truth, &t->plan, text);
        snprintf(note, sizeof(note), "trial %zu: %s, %.2f ms", i + 1, text,
                 t->measured.bottleneck_ns / 1e6);
        large[s] = i == run.result ? json_array_size(points[s]) : large[s];
        page_point(points[s], (double)i + 1, t->measured.bottleneck_ns / 1e6, note);
    }
    chart = page_new("pipe-search-timeline", "Slowest stage of each trial", "lines",
                     page_axis("trial", false, 0, (double)run.count + 1),
                     page_axis("slowest stage, ms", false, 0, NAN));
    for (size_t s = 0; s < base_array_count(STAGES); s++) {
        json_t *series = page_series(STAGES[s], points[s]);

        json_object_set_new(series, "marks", json_true());
        if (large[s] != SIZE_MAX) {
            json_object_set_new(series, "large", json_integer((json_int_t)large[s]));
        }
        page_add(chart, series);
    }
    page_chart(r->to, chart);
    page_paragraph(
        r->to, NULL,
        "Synth 2 on a Jetson TX2 with its A57 cores at their lowest frequency (governor setting "
        "3), alpha 15. Each mark is a trial; the large one is where it ended. The paper's ends "
        "with three stages, [8,6,1].");
    return 0;
}

int psim_add_plan(struct psim_report *r, const struct psim_case *c, const struct tun_problem *told,
                  const char *algorithm, const char *key, json_t *row)
{
    char text[PL_PLAN_TEXT_MAX];
    base_cleanup(psim_run_deinit) struct psim_run run = {0};
    struct psim_machine machine = psim_machine(&c->truth, r->seed);
    int error =
        psim_run(algorithm, told, &(struct tun_options){.seed = r->seed}, &machine, r->error, &run);

    if (!error) {
        tun_plan_text(&c->truth, &run.log[run.result].plan, text);
        json_object_set_new(row, key,
                            json_pack("{s:s, s:f, s:f}", "plan", text, "fps",
                                      1e9 / run.bottleneck_ns, "per_joule",
                                      1e9 / run.outcome.energy_nj));
    }
    return error;
}

static int governor_row(struct psim_report *r, const char *setting, json_t *rows)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    json_t *row = json_object();
    int error = psim_case_init("vgg16", PSIM_LAYERS, setting, r->error, &c);

    json_array_append_new(rows, row);
    json_object_set_new(row, "setting", json_string(c.platform.title));
    error = error ? error : psim_add_plan(r, &c, &c.truth, "pipe-search", "pipe-search", row);
    return error ? error : psim_add_plan(r, &c, &c.truth, "exact", "exact", row);
}

int psim_report_governors(struct psim_report *r)
{
    static const char *const SETTINGS[] = {"tx2-1", "tx2-2", "tx2-3", "tx2-4"};
    static const struct page_column COLUMNS[] = {
        {.heading = "setting", .path = "setting"},
        {.heading = "pipe-search", .path = "pipe-search.plan", .kind = PAGE_CODE},
        {.heading = "frames/s", .path = "pipe-search.fps", .kind = PAGE_NUMBER, .decimals = 2},
        {.heading = "exact", .path = "exact.plan", .kind = PAGE_CODE},
        {.heading = "frames/s", .path = "exact.fps", .kind = PAGE_NUMBER, .decimals = 2},
        {0}};
    json_auto_t *rows = json_array();
    int error = 0;

    for (size_t i = 0; i < base_array_count(SETTINGS) && !error; i++) {
        error = governor_row(r, SETTINGS[i], rows);
    }
    if (!error) {
        page_table(r->to,
                   "VGG-16, counted as 21 layers as in the paper, under its four governor settings",
                   COLUMNS, rows);
    }
    return error;
}

#define FRONT_MAX 24u

int psim_report_front(struct psim_report *r)
{
    base_autofree struct tun_solution *front = calloc(FRONT_MAX, sizeof(*front));
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    json_t *points, *chart, *s;
    size_t count = 0;
    int error = psim_case_init("resnet50", PSIM_UNITS, "rk3588", r->error, &c);

    error = error ? error : front ? tun_front(&c.truth, FRONT_MAX, front, &count) : -ENOMEM;
    if (error) {
        return error;
    }
    points = json_array();
    for (size_t i = 0; i < count; i++) {
        char text[PL_PLAN_TEXT_MAX], note[PL_PLAN_TEXT_MAX + 64];
        double fps = 1e9 / front[i].outcome.bottleneck_ns;

        tun_plan_text(&c.truth, &front[i].plan, text);
        snprintf(note, sizeof(note), "%s: %.1f frames/s, %.0f ms", text, fps,
                 front[i].outcome.latency_ns / 1e6);
        page_point(points, fps, front[i].outcome.latency_ns / 1e6, note);
    }
    s = page_series("no plan is better in both", points);
    json_object_set_new(s, "marks", json_true());
    chart = page_new("front", "Front of ResNet-50 on an RK3588", "lines",
                     page_axis("frames/s", false, 0, NAN),
                     page_axis("latency of the worst frame, ms", false, 0, NAN));
    page_add(chart, s);
    page_chart(r->to, chart);
    page_paragraph(r->to, NULL,
                   "ResNet-50 on an RK3588 as described; each mark is a plan of the front that "
                   "pipectl plan front prints for a served model.");
    return 0;
}
