/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the Shisha paper. */
#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/pipesim/report.h"

static const char *const SEARCHES[] = {"exact",         "shisha",    "pipe-search-database",
                                       "pipe-search",   "annealing", "annealing-seeded",
                                       "hill-climbing", "random",    "hill-climbing-seeded"};

/* Time against the best throughput so far, as a share of the optimum. */
static size_t curve(const struct psim_run *run, double *x, double *y)
{
    double at_s = run->own_s, best = INFINITY;
    size_t points = 0;

    for (size_t i = 0; i < run->count; i++) {
        const struct tun_trial *t = &run->log[i];

        at_s += t->spent_ns / 1e9;
        if (!t->failed && t->measured.bottleneck_ns < best) {
            best = t->measured.bottleneck_ns;
            x[points] = at_s;
            y[points++] = run->optimum_ns / best;
        }
    }
    x[points] = at_s;
    y[points] = points ? y[points - 1] : 0;
    return points + 1;
}

int psim_report_convergence(struct psim_report *r)
{
    struct psim_chart chart = {.to = r->to,
                               .id = "shisha-convergence",
                               .x = {.label = "time spent, s", .min = 1e-3, .max = 1, .log = true},
                               .y = {.label = "best throughput / optimum", .min = 0, .max = 1.05}};
    struct psim_run runs[base_array_count(SEARCHES)] = {0};
    struct psim_case c;
    int error = psim_case_init(r, "synthnet", "shisha-c5", false, &c);
    double first = INFINITY, last = 0;

    if (error) {
        return error;
    }
    for (size_t a = 0; a < base_array_count(SEARCHES) && !error; a++) {
        error = psim_case_run(r, &c, SEARCHES[a], NULL, &runs[a]);
        if (!error) {
            last = base_max(last, runs[a].tuning_s);
            first = base_min(first, runs[a].own_s + runs[a].log[0].spent_ns / 1e9);
        }
    }
    chart.x.min = pow(10, floor(log10(base_max(first, 1e-6))));
    chart.x.max = pow(10, ceil(log10(base_max(last, 1e-5))));
    fputs("<h2>Convergence (Shisha, figure 4)</h2>\n", r->to);
    chart.legend = SEARCHES;
    chart.legend_count = base_array_count(SEARCHES);
    psim_svg_begin(&chart, "best throughput so far against time, SynthNet on eight places");
    for (size_t a = 0; a < base_array_count(SEARCHES) && !error; a++) {
        double *x = calloc(2 * (runs[a].count + 1), sizeof(*x)), *y = x + runs[a].count + 1;

        if (!x) {
            error = -ENOMEM;
            break;
        }
        psim_svg_steps(&chart, a, x, y, curve(&runs[a], x, y));
        free(x);
    }
    psim_svg_end(&chart);
    fputs(
        "<p>SynthNet on eight execution places (four fast clusters, four three times slower). The "
        "plans that <code>exact</code> may use include several teams in a stage; the others build "
        "the papers' pipelines, one place a stage, so that some of them cannot reach 1.</p>\n",
        r->to);
    for (size_t a = 0; a < base_array_count(SEARCHES); a++) {
        psim_run_deinit(&runs[a]);
    }
    psim_case_deinit(&c);
    return error;
}

int psim_report_quality(struct psim_report *r)
{
    static const char *const NETWORKS[] = {"resnet50", "yolov3", "synthnet"};
    double values[base_array_count(NETWORKS) * base_array_count(SEARCHES)];
    struct psim_chart chart = {.to = r->to,
                               .id = "shisha-quality",
                               .x = {.min = 0, .max = base_array_count(NETWORKS)},
                               .y = {.label = "throughput / optimum", .min = 0, .max = 1.05}};

    for (size_t n = 0; n < base_array_count(NETWORKS); n++) {
        struct psim_case c;
        int error = psim_case_init(r, NETWORKS[n], "shisha-c2", false, &c);

        for (size_t a = 0; a < base_array_count(SEARCHES) && !error; a++) {
            struct psim_run run;
            double *value = &values[n * base_array_count(SEARCHES) + a];

            *value = -1;
            /* a database of every cut is out of reach for deep networks, as the paper says */
            error = psim_case_run(r, &c, SEARCHES[a], NULL, &run);
            if (!error) {
                *value = run.optimum_ns / run.bottleneck_ns;
                psim_run_deinit(&run);
            } else if (error == -E2BIG || error == -EINVAL) {
                error = 0;
            }
        }
        if (error) {
            return error;
        }
        psim_case_deinit(&c);
    }
    fputs("<h2>Quality (Shisha, figure 5)</h2>\n", r->to);
    chart.legend = SEARCHES;
    chart.legend_count = base_array_count(SEARCHES);
    psim_svg_begin(&chart, "throughput of the plan each search ends with, on four places");
    psim_svg_bars(&chart, NETWORKS, base_array_count(NETWORKS), SEARCHES,
                  base_array_count(SEARCHES), values);
    psim_svg_end(&chart);
    fputs("<p>Four execution places, two of them three times slower. 1 is the optimum of the whole "
          "space, found by the exact planner and checked against brute force on small cases.</p>\n",
          r->to);
    return 0;
}

#define CONFIGURATIONS 6u
static const char *const PLACES[CONFIGURATIONS] = {"shisha-c1", "shisha-c2", "shisha-c3",
                                                   "shisha-c4", "shisha-c5", "shisha-c6"};
static const char *const SHORT[CONFIGURATIONS] = {"C1", "C2", "C3", "C4", "C5", "C6"};

/* H1..H6 on one machine. Return: 0 or -errno. */
static int six(struct psim_report *r, const char *platform, double ret_throughput[6],
               double ret_seconds[6])
{
    struct psim_case c;
    int error = psim_case_init(r, "yolov3", platform, false, &c);

    for (unsigned h = 1; h <= 6 && !error; h++) {
        struct tun_options options = {.heuristic = h, .alpha = 10};
        struct psim_run run;

        error = psim_case_run(r, &c, "shisha", &options, &run);
        if (!error) {
            ret_throughput[h - 1] = run.optimum_ns / run.bottleneck_ns;
            ret_seconds[h - 1] = run.tuning_s;
            psim_run_deinit(&run);
        }
    }
    if (!error) {
        psim_case_deinit(&c);
    }
    return error;
}

int psim_report_heuristics(struct psim_report *r)
{
    static const char *const H[] = {"H1", "H2", "H3", "H4", "H5", "H6"};
    static const char *const PAIR[] = {"H1", "H3"};
    double throughput[CONFIGURATIONS * 6], seconds[CONFIGURATIONS * 6], pair[CONFIGURATIONS * 2];
    struct psim_chart chart = {.to = r->to,
                               .id = "shisha-heuristics",
                               .x = {.min = 0, .max = CONFIGURATIONS},
                               .y = {.label = "throughput / optimum", .min = 0, .max = 1.05}};
    double most = 1;

    for (size_t i = 0; i < CONFIGURATIONS; i++) {
        int error = six(r, PLACES[i], throughput + 6 * i, seconds + 6 * i);
        double least = base_min(seconds[6 * i], seconds[6 * i + 2]);

        if (error) {
            return error;
        }
        pair[2 * i] = seconds[6 * i] / least;
        pair[2 * i + 1] = seconds[6 * i + 2] / least;
        most = base_max(most, base_max(pair[2 * i], pair[2 * i + 1]));
    }
    fputs("<h2>Heuristics of Shisha (figures 7 and 8)</h2>\n", r->to);
    chart.legend = H;
    chart.legend_count = 6;
    psim_svg_begin(&chart, "throughput by heuristic and machine, YOLOv3");
    psim_svg_bars(&chart, SHORT, CONFIGURATIONS, H, 6, throughput);
    psim_svg_end(&chart);
    fputs(
        "<p>YOLOv3 on the six machines of the paper's table 2; H1 to H6 as in its table 1. Below: "
        "tuning time of H1 and H3, each pair normalised to its shorter one.</p>\n",
        r->to);
    chart = (struct psim_chart){.to = r->to,
                                .id = "shisha-h1-h3",
                                .x = {.min = 0, .max = CONFIGURATIONS},
                                .y = {.label = "tuning time", .min = 0, .max = most * 1.05},
                                .height = 240};
    chart.legend = PAIR;
    chart.legend_count = 2;
    psim_svg_begin(&chart, "tuning time of H1 and H3");
    psim_svg_bars(&chart, SHORT, CONFIGURATIONS, PAIR, 2, pair);
    psim_svg_end(&chart);
    return 0;
}

int psim_report_alpha(struct psim_report *r)
{
    static const char *const NAMES[] = {"3 times slower", "6 times slower", "12 times slower"};
    static const char *const MACHINES[] = {"shisha-c5", "shisha-c5-6x", "shisha-c5-12x"};
    static const unsigned ALPHAS[] = {1, 2, 5, 10, 20, 50, 100};
    struct psim_chart chart = {
        .to = r->to,
        .id = "shisha-alpha",
        .x = {.label = "alpha", .min = 1, .max = 100, .log = true},
        .y = {.label = "throughput / that of alpha 100", .min = 0, .max = 1.1}};

    fputs("<h2>Alpha (Shisha, figure 9)</h2>\n", r->to);
    chart.legend = NAMES;
    chart.legend_count = base_array_count(NAMES);
    psim_svg_begin(&chart, "quality against alpha");
    for (size_t m = 0; m < base_array_count(MACHINES); m++) {
        double x[base_array_count(ALPHAS)], y[base_array_count(ALPHAS)], full;
        struct psim_case c;
        int error = psim_case_init(r, "yolov3", MACHINES[m], false, &c);

        for (size_t i = base_array_count(ALPHAS); i-- > 0 && !error;) {
            struct tun_options options = {.alpha = ALPHAS[i]};
            struct psim_run run;

            error = psim_case_run(r, &c, "shisha", &options, &run);
            if (!error) {
                x[i] = ALPHAS[i];
                y[i] = 1 / run.bottleneck_ns;
                psim_run_deinit(&run);
            }
        }
        if (error) {
            return error;
        }
        full = y[base_array_count(ALPHAS) - 1];
        for (size_t i = 0; i < base_array_count(ALPHAS); i++) {
            char note[96];

            y[i] /= full;
            snprintf(note, sizeof(note), "%s, alpha %u: %.3f", NAMES[m], ALPHAS[i], y[i]);
            psim_svg_point(&chart, m, x[i], y[i], false, note);
        }
        psim_svg_line(&chart, m, x, y, base_array_count(ALPHAS));
        psim_case_deinit(&c);
    }
    psim_svg_end(&chart);
    fputs("<p>YOLOv3 on four fast and four slow places.</p>\n", r->to);
    return 0;
}
