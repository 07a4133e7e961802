/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the Pipe-search and Pipe-it papers, and the throughput-latency front. */
#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/pipesim/report.h"
#include "tuner/search/places.h"
#include "tuner/solve/front.h"

static void plan_text(const struct tun_problem *p, const struct pl_plan *plan,
                      char ret[PL_PLAN_TEXT_MAX])
{
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    if (pl_plan_format(plan, &eps, ret, PL_PLAN_TEXT_MAX) < 0) {
        snprintf(ret, PL_PLAN_TEXT_MAX, "(too long)");
    }
}

int psim_report_timeline(struct psim_report *r)
{
    static const char *const STAGES[] = {"2 stages", "3 stages", "4 stages"};
    struct psim_chart chart = {.to = r->to,
                               .id = "pipe-search-timeline",
                               .x = {.label = "trial", .min = 0, .max = 1},
                               .y = {.label = "slowest stage, ms", .min = 0, .max = 0}};
    struct tun_options options = {.alpha = 15}; /* the paper's figure 3 */
    struct psim_case c;
    struct psim_run run;
    int error = psim_case_init(r, "synth2", "tx2-3", false, &c);

    if (error) {
        return error;
    }
    error = psim_case_run(r, &c, "pipe-search", &options, &run);
    if (error) {
        psim_case_deinit(&c);
        return error;
    }
    chart.x.max = base_max((double)run.count, 1.0);
    for (size_t i = 0; i < run.count; i++) {
        chart.y.max = base_max(chart.y.max, run.log[i].measured.bottleneck_ns / 1e6 * 1.08);
    }
    fputs("<h2>Exploration of Pipe-search (figure 3)</h2>\n", r->to);
    chart.legend = STAGES;
    chart.legend_count = base_array_count(STAGES);
    psim_svg_begin(&chart, "slowest stage of each trial");
    for (size_t i = 0; i < run.count; i++) {
        const struct tun_trial *t = &run.log[i];
        char text[PL_PLAN_TEXT_MAX], note[PL_PLAN_TEXT_MAX + 64];

        plan_text(&c.truth, &t->plan, text);
        snprintf(note, sizeof(note), "trial %zu: %s, %.2f ms", i + 1, text,
                 t->measured.bottleneck_ns / 1e6);
        psim_svg_point(&chart, t->plan.stage_count - 2, (double)i + 0.5,
                       t->measured.bottleneck_ns / 1e6, i == run.result, note);
    }
    psim_svg_end(&chart);
    fputs(
        "<p>Synth 2 on a Jetson TX2 with its A57 cores at their lowest frequency (governor setting "
        "3), alpha 15. Each dot is a trial; the large one is where it ended.</p>\n",
        r->to);
    psim_run_deinit(&run);
    psim_case_deinit(&c);
    return 0;
}

static void cell(FILE *to, const char *text)
{
    fputs("<td><code>", to);
    psim_svg_text(to, text);
    fputs("</code></td>", to);
}

/* One row: the plan a search ends with and its frames/s. */
static int plan_cells(struct psim_report *r, const struct psim_case *c, const char *algorithm,
                      double *ret_fps)
{
    char text[PL_PLAN_TEXT_MAX];
    struct psim_run run;
    int error = psim_case_run(r, c, algorithm, NULL, &run);

    if (error) {
        return error;
    }
    *ret_fps = 1e9 / run.bottleneck_ns;
    plan_text(&c->truth, &run.log[run.result].plan, text);
    cell(r->to, text);
    fprintf(r->to, "<td class=\"n\">%.2f</td>", *ret_fps);
    psim_run_deinit(&run);
    return 0;
}

int psim_report_governors(struct psim_report *r)
{
    static const char *const SETTINGS[] = {"tx2-1", "tx2-2", "tx2-3", "tx2-4"};

    fputs("<h2>Governor settings (Pipe-search, table 6)</h2>\n<div class=\"wide\"><table><tr>"
          "<th>setting</th><th>pipe-search</th><th class=\"n\">frames/s</th><th>exact</th>"
          "<th class=\"n\">frames/s</th></tr>\n",
          r->to);
    for (size_t i = 0; i < base_array_count(SETTINGS); i++) {
        struct psim_case c;
        double fps;
        int error = psim_case_init(r, "vgg16", SETTINGS[i], true, &c);

        if (error) {
            return error;
        }
        fputs("<tr><td>", r->to);
        psim_svg_text(r->to, c.platform.title);
        fputs("</td>", r->to);
        error = plan_cells(r, &c, "pipe-search", &fps);
        error = error ? error : plan_cells(r, &c, "exact", &fps);
        fputs("</tr>\n", r->to);
        psim_case_deinit(&c);
        if (error) {
            return error;
        }
    }
    fputs(
        "</table></div>\n<p>VGG-16, counted as 21 layers as in the paper, under its four governor "
        "settings.</p>\n",
        r->to);
    return 0;
}

int psim_report_boards(struct psim_report *r)
{
    static const char *const NETWORKS[] = {"alexnet", "googlenet", "mobilenet_v1", "resnet50",
                                           "squeezenet1_0"};

    fputs("<h2>Big and little together (Pipe-it, tables IV and V)</h2>\n<div class=\"wide\"><table>"
          "<tr><th>network</th><th class=\"n\">big cores</th><th class=\"n\">little cores</th>"
          "<th>pipe-it</th><th class=\"n\">frames/s</th><th>exact</th><th class=\"n\">frames/s</th>"
          "<th class=\"n\">gain of pipe-it</th><th class=\"n\">of exact</th></tr>\n",
          r->to);
    for (size_t n = 0; n < base_array_count(NETWORKS); n++) {
        struct psim_case c;
        size_t order[PL_EP_MAX];
        double big, little, pipe_it, exact;
        int error = psim_case_init(r, NETWORKS[n], "hikey970", false, &c);

        if (error) {
            return error;
        }
        tun_rank_eps(&c.truth, order);
        big = 1e9 / tun_team_ns(&c.truth, 0, c.truth.unit_count - 1, order[0],
                                c.truth.eps[order[0]].cores);
        little = 1e9 / tun_team_ns(&c.truth, 0, c.truth.unit_count - 1, order[1],
                                   c.truth.eps[order[1]].cores);
        fprintf(r->to, "<tr><td>%s</td><td class=\"n\">%.2f</td><td class=\"n\">%.2f</td>",
                NETWORKS[n], big, little);
        error = plan_cells(r, &c, "pipe-it", &pipe_it);
        error = error ? error : plan_cells(r, &c, "exact", &exact);
        psim_case_deinit(&c);
        if (error) {
            return error;
        }
        fprintf(r->to, "<td class=\"n\">%.0f %%</td><td class=\"n\">%.0f %%</td></tr>\n",
                100 * (pipe_it / big - 1), 100 * (exact / big - 1));
    }
    fputs(
        "</table></div>\n<p>The Hikey 970 as described: four A73 and four A53 cores. The first two "
        "columns are all cores of one EP on one layer at a time, in frames/s.</p>\n",
        r->to);
    return 0;
}

#define FRONT_MAX 24u

int psim_report_front(struct psim_report *r)
{
    static const char *const LABEL[] = {"no plan is better in both"};
    struct psim_chart chart = {
        .to = r->to,
        .id = "front",
        .x = {.label = "frames/s", .min = 0, .max = 0},
        .y = {.label = "latency of the worst frame, ms", .min = 0, .max = 0}};
    struct tun_solution *front = calloc(FRONT_MAX, sizeof(*front));
    struct psim_case c;
    size_t count = 0;
    int error = psim_case_init(r, "resnet50", "rk3588", false, &c);

    if (error || !front) {
        free(front);
        return error ? error : -ENOMEM;
    }
    error = tun_front(&c.truth, FRONT_MAX, front, &count);
    for (size_t i = 0; i < count && !error; i++) {
        chart.x.max = base_max(chart.x.max, 1.05e9 / front[i].outcome.bottleneck_ns);
        chart.y.max = base_max(chart.y.max, front[i].outcome.latency_ns / 1e6 * 1.05);
    }
    if (!error) {
        fputs("<h2>Throughput against latency</h2>\n", r->to);
        chart.legend = LABEL;
        chart.legend_count = 1;
        psim_svg_begin(&chart, "front of ResNet-50 on an RK3588");
        for (size_t i = 0; i < count; i++) {
            char text[PL_PLAN_TEXT_MAX], note[PL_PLAN_TEXT_MAX + 64];
            double fps = 1e9 / front[i].outcome.bottleneck_ns;

            plan_text(&c.truth, &front[i].plan, text);
            snprintf(note, sizeof(note), "%s: %.1f frames/s, %.0f ms", text, fps,
                     front[i].outcome.latency_ns / 1e6);
            psim_svg_point(&chart, 0, fps, front[i].outcome.latency_ns / 1e6, true, note);
        }
        psim_svg_end(&chart);
        fputs("<p>ResNet-50 on an RK3588 as described; each dot is a plan of the front that "
              "<code>pipectl plan front</code> prints for a served model.</p>\n",
              r->to);
    }
    free(front);
    psim_case_deinit(&c);
    return error;
}
