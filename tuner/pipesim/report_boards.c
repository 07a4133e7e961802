/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the Pipe-search and Pipe-it papers, and the throughput-latency front. */
#include <math.h>

#include "base/base.h"
#include "tuner/pipesim/report.h"
#include "tuner/pipesim/subject.h"
#include "tuner/search/places.h"
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
        "with "
        "three stages, [8,6,1].");
    return 0;
}

/* Adds to @row the plan that a search ends with, and its frames/s, under the algorithm's name. */
static int add_plan(struct psim_report *r, const struct psim_case *c, const char *algorithm,
                    json_t *row, double *ret_fps)
{
    char text[PL_PLAN_TEXT_MAX];
    base_cleanup(psim_run_deinit) struct psim_run run = {0};
    int error = psim_case_run(r, c, algorithm, NULL, &run);

    if (!error) {
        *ret_fps = 1e9 / run.bottleneck_ns;
        tun_plan_text(&c->truth, &run.log[run.result].plan, text);
        json_object_set_new(row, algorithm, json_pack("{s:s, s:f}", "plan", text, "fps", *ret_fps));
    }
    return error;
}

static int governor_row(struct psim_report *r, const char *setting, json_t *rows)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    json_t *row = json_object();
    double fps;
    int error = psim_case_init("vgg16", PSIM_LAYERS, setting, r->error, &c);

    json_array_append_new(rows, row);
    json_object_set_new(row, "setting", json_string(c.platform.title));
    error = error ? error : add_plan(r, &c, "pipe-search", row, &fps);
    return error ? error : add_plan(r, &c, "exact", row, &fps);
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

static int board_row(struct psim_report *r, const char *network, json_t *rows)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    size_t order[PL_EP_MAX], last;
    json_t *row = json_object();
    double big, little, pipe_it, exact;
    int error = psim_case_init(network, PSIM_UNITS, "hikey970", r->error, &c);

    json_array_append_new(rows, row);
    if (error) {
        return error;
    }
    last = c.truth.unit_count - 1;
    tun_rank_eps(&c.truth, order);
    big = 1e9 / tun_team_ns(&c.truth, 0, last, order[0], c.truth.eps[order[0]].cores);
    little = 1e9 / tun_team_ns(&c.truth, 0, last, order[1], c.truth.eps[order[1]].cores);
    error = add_plan(r, &c, "pipe-it", row, &pipe_it);
    error = error ? error : add_plan(r, &c, "exact", row, &exact);
    if (!error) {
        json_object_update_new(row, json_pack("{s:s, s:f, s:f, s:f, s:f}", "network", network,
                                              "big", big, "little", little, "pipe_it_gain",
                                              100 * (pipe_it / big - 1), "exact_gain",
                                              100 * (exact / big - 1)));
    }
    return error;
}

int psim_report_boards(struct psim_report *r)
{
    static const char *const NETWORKS[] = {"alexnet", "googlenet", "mobilenet_v1", "resnet50",
                                           "squeezenet1_0"};
    static const struct page_column COLUMNS[] = {
        {.heading = "network", .path = "network"},
        {.heading = "big cores", .path = "big", .kind = PAGE_NUMBER, .decimals = 2},
        {.heading = "little cores", .path = "little", .kind = PAGE_NUMBER, .decimals = 2},
        {.heading = "pipe-it", .path = "pipe-it.plan", .kind = PAGE_CODE},
        {.heading = "frames/s", .path = "pipe-it.fps", .kind = PAGE_NUMBER, .decimals = 2},
        {.heading = "exact", .path = "exact.plan", .kind = PAGE_CODE},
        {.heading = "frames/s", .path = "exact.fps", .kind = PAGE_NUMBER, .decimals = 2},
        {.heading = "gain of pipe-it, %", .path = "pipe_it_gain", .kind = PAGE_NUMBER},
        {.heading = "of exact, %", .path = "exact_gain", .kind = PAGE_NUMBER},
        {0}};
    json_auto_t *rows = json_array();
    int error = 0;

    for (size_t n = 0; n < base_array_count(NETWORKS) && !error; n++) {
        error = board_row(r, NETWORKS[n], rows);
    }
    if (!error) {
        page_table(r->to, "Five networks on a Hikey 970", COLUMNS, rows);
        page_paragraph(r->to, NULL,
                       "The Hikey 970 as described: four A73 and four A53 cores. The first two "
                       "columns are all cores of one EP on one layer at a time, in frames/s.");
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
