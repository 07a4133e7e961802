/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of the Shisha paper. */
#include <math.h>

#include "base/base.h"
#include "base/json_text.h"
#include "tuner/pipesim/report.h"

static const char *const SEARCHES[] = {"exact",         "shisha",    "pipe-search-database",
                                       "pipe-search",   "annealing", "annealing-seeded",
                                       "hill-climbing", "random",    "hill-climbing-seeded"};

/* Time against the best throughput so far, as a share of the optimum. */
static json_t *curve(const struct psim_run *run)
{
    double at_s = run->own_s, best = INFINITY;
    json_t *points = json_array();

    for (size_t i = 0; i < run->count; i++) {
        const struct tun_trial *t = &run->log[i];

        at_s += t->spent_ns / 1e9;
        if (!t->failed && t->measured.bottleneck_ns < best) {
            best = t->measured.bottleneck_ns;
            page_point(points, at_s, run->optimum_ns / best, NULL);
        }
    }
    page_point(points, at_s, isfinite(best) ? run->optimum_ns / best : 0, NULL);
    return points;
}

/* As printed, by the heuristic that the paper recommends; the machines say N. */
static const struct tun_options PRINTED = {.heuristic = TUN_HEURISTIC};

int psim_case_run(struct psim_report *r, const struct psim_case *c, const char *algorithm,
                  const struct tun_options *o, struct psim_run *ret)
{
    struct psim_machine machine = psim_machine(&c->truth, r->seed);
    struct tun_options options = o ? *o : (struct tun_options){0};

    options.seed += r->seed;
    return psim_run(algorithm, &c->truth, &options, &machine, r->error, ret);
}

int psim_report_convergence(struct psim_report *r)
{
    struct psim_run runs[base_array_count(SEARCHES)] = {0};
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    int error = psim_case_init("synthnet", PSIM_UNITS, "shisha-c5", r->error, &c);
    double first = INFINITY, last = 0;
    json_t *chart;

    if (error) {
        return error;
    }
    for (size_t a = 0; a < base_array_count(SEARCHES) && !error; a++) {
        error = psim_case_run(r, &c, SEARCHES[a], &PRINTED, &runs[a]);
        if (!error) {
            last = base_max(last, runs[a].tuning_s);
            first = base_min(first, runs[a].own_s + runs[a].log[0].spent_ns / 1e9);
        }
    }
    chart = page_new("shisha-convergence",
                     "Best throughput so far against time, SynthNet on eight places", "lines",
                     page_axis("time spent, s", true, pow(10, floor(log10(base_max(first, 1e-6)))),
                               pow(10, ceil(log10(base_max(last, 1e-5))))),
                     page_axis("best throughput / optimum", false, 0, 1.05));
    for (size_t a = 0; a < base_array_count(SEARCHES) && !error; a++) {
        json_t *s = page_series(SEARCHES[a], curve(&runs[a]));

        json_object_set_new(s, "steps", json_true());
        page_add(chart, s);
    }
    page_chart(r->to, chart);
    page_paragraph(
        r->to, NULL,
        "SynthNet on eight execution places (four fast clusters, four three times slower). The "
        "plans that exact may use include several teams in a stage; the others build the papers' "
        "pipelines, one place a stage. The best of all these has %.3f of the optimum.",
        runs[0].optimum_ns / psim_best(&c.truth, TUN_SPACE_PLACES, NULL));
    for (size_t a = 0; a < base_array_count(SEARCHES); a++) {
        psim_run_deinit(&runs[a]);
    }
    return error;
}

/* Bars of values [group][series], negative: none. @y: the axis, taken. */
static void draw_bars(struct psim_report *r, const char *id, const char *title, json_t *x,
                      json_t *y, const char *const *names, size_t series, const double *values)
{
    size_t groups = json_array_size(json_object_get(x, "names"));
    json_t *chart = page_new(id, title, "bars", x, y);

    for (size_t s = 0; s < series; s++) {
        json_t *list = json_array();

        for (size_t g = 0; g < groups; g++) {
            double v = values[g * series + s];

            json_array_append_new(list, json_text_number(v < 0 ? NAN : v));
        }
        page_add(chart, page_bars(names[s], list));
    }
    page_chart(r->to, chart);
}

static const char *const NETWORKS[] = {"resnet50", "yolov3", "synthnet"};
#define NETWORKS_COUNT base_array_count(NETWORKS)

int psim_report_quality(struct psim_report *r)
{
    const char *names[base_array_count(SEARCHES) + 1] = {"exhaustive"};
    double values[NETWORKS_COUNT * base_array_count(names)];

    memcpy(names + 1, SEARCHES, sizeof(SEARCHES));
    for (size_t n = 0; n < NETWORKS_COUNT; n++) {
        base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
        double *value = &values[n * base_array_count(names)], best = 0;
        int error = psim_case_init(NETWORKS[n], PSIM_UNITS, "shisha-c2", r->error, &c);

        best = error ? 0 : psim_best(&c.truth, TUN_SPACE_PLACES, NULL);
        for (size_t a = 0; a < base_array_count(SEARCHES) && !error; a++) {
            base_cleanup(psim_run_deinit) struct psim_run run = {0};

            error = psim_case_run(r, &c, SEARCHES[a], &PRINTED, &run);
            value[0] = error ? value[0] : run.optimum_ns / best;
            value[a + 1] = error ? -1 : run.optimum_ns / run.bottleneck_ns;
            if (error == -E2BIG || error == -EINVAL) {
                /* a database of every cut is out of reach for deep networks, as the paper says */
                error = 0;
            }
        }
        if (error) {
            return error;
        }
    }
    draw_bars(r, "shisha-quality", "Throughput of the plan each search ends with, on four places",
              page_names("network", NETWORKS, NETWORKS_COUNT),
              page_axis("throughput / optimum", false, 0, 1.05), names, base_array_count(names),
              values);
    page_paragraph(
        r->to, NULL,
        "Four execution places, two of them three times slower. 1 is the optimum of the whole "
        "space, found by the exact planner and checked against brute force on small cases; "
        "exhaustive is the best of the papers' pipelines, one place a stage.");
    return 0;
}

/* ---- figure 6 ---- */

#define SEEDS 100u

struct scatter { /* of seeds and of what Algorithm 2 makes of them */
    json_t *seeds, *ends;
    double worse, seconds; /* how many ends are worse than Shisha's own; sum of their times */
    double ratio;          /* of Shisha's own end */
};

static void add_scatter(struct scatter *s, const struct psim_run *run)
{
    page_point(s->seeds, run->log[0].spent_ns / 1e9,
               run->optimum_ns / run->log[0].measured.bottleneck_ns, NULL);
    page_point(s->ends, run->tuning_s, run->optimum_ns / run->bottleneck_ns, NULL);
    s->worse += run->ratio > s->ratio * (1 + 1e-9);
    s->seconds += run->tuning_s;
}

static void draw_scatter(struct psim_report *r, const char *network, struct scatter s[2])
{
    static const char *const NAMES[2][2] = {{"Shisha's seed", "its end"},
                                            {"random seeds", "their ends"}};
    char id[64], title[96];
    json_t *chart;

    snprintf(id, sizeof(id), "shisha-seeds-%s", network);
    snprintf(title, sizeof(title), "Seeds and what is made of them, %s", network);
    chart = page_new(id, title, "lines", page_axis("time spent, s", true, NAN, NAN),
                     page_axis("throughput / optimum", false, 0, 1.05));
    for (size_t i = 2; i-- > 0;) {
        json_t *seeds = page_series(NAMES[i][0], s[i].seeds);
        json_t *ends = page_series(NAMES[i][1], s[i].ends);

        json_object_set_new(seeds, "marks", json_true());
        json_object_set_new(ends, "marks", json_true());
        page_add(chart, seeds);
        page_add(chart, ends);
    }
    page_chart(r->to, chart);
    page_paragraph(
        r->to, NULL,
        "%s on four execution places, two of them three times slower; H3, alpha 10. Of %u "
        "random seeds, which cut and place at random, %.0f end worse than Shisha's own, which "
        "takes %.2f of the mean of their times.",
        network, SEEDS, s[1].worse, s[0].seconds / (s[1].seconds / SEEDS));
}

int psim_report_seeds(struct psim_report *r)
{
    int error = 0;

    for (size_t n = 0; n < 2 && !error; n++) {
        base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
        struct scatter s[2] = {{json_array(), json_array(), 0, 0, 0},
                               {json_array(), json_array(), 0, 0, 0}};

        error = psim_case_init(NETWORKS[n], PSIM_UNITS, "shisha-c2", r->error, &c);
        for (size_t i = 0; i <= SEEDS && !error; i++) {
            base_cleanup(psim_run_deinit) struct psim_run run = {0};
            struct tun_options options = {
                .seed = i, .heuristic = TUN_HEURISTIC, .drawn_seed = i > 0};

            error = psim_case_run(r, &c, "shisha", &options, &run);
            s[1].ratio = i || error ? s[1].ratio : run.ratio;
            if (!error) {
                add_scatter(&s[i > 0], &run);
            }
        }
        if (error) {
            for (size_t i = 0; i < 2; i++) {
                json_decref(s[i].seeds);
                json_decref(s[i].ends);
            }
        } else {
            draw_scatter(r, NETWORKS[n], s);
        }
    }
    return error;
}

#define CONFIGURATIONS 6u
static const char *const PLACES[CONFIGURATIONS] = {"shisha-c1", "shisha-c2", "shisha-c3",
                                                   "shisha-c4", "shisha-c5", "shisha-c6"};
static const char *const SHORT[CONFIGURATIONS] = {"C1", "C2", "C3", "C4", "C5", "C6"};

/* H1..H6 on one machine. Return: 0 or -errno. */
static int six(struct psim_report *r, const char *network, const char *platform,
               double ret_throughput[6], double ret_seconds[6])
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    int error = psim_case_init(network, PSIM_UNITS, platform, r->error, &c);

    for (unsigned h = 1; h <= 6 && !error; h++) {
        struct tun_options options = {.heuristic = h, .alpha = 10};
        base_cleanup(psim_run_deinit) struct psim_run run = {0};

        error = psim_case_run(r, &c, "shisha", &options, &run);
        ret_throughput[h - 1] = run.optimum_ns / run.bottleneck_ns;
        ret_seconds[h - 1] = run.tuning_s;
    }
    return error;
}

int psim_report_heuristics(struct psim_report *r)
{
    static const char *const H[] = {"H1", "H2", "H3", "H4", "H5", "H6"};
    double throughput[CONFIGURATIONS * 6], seconds[CONFIGURATIONS * 6];
    double pair[CONFIGURATIONS * NETWORKS_COUNT];

    for (size_t n = 0; n < NETWORKS_COUNT; n++) {
        char id[64], title[96];

        for (size_t i = 0; i < CONFIGURATIONS; i++) {
            int error = six(r, NETWORKS[n], PLACES[i], throughput + 6 * i, seconds + 6 * i);

            if (error) {
                return error;
            }
            pair[NETWORKS_COUNT * i + n] = seconds[6 * i + 2] / seconds[6 * i];
        }
        snprintf(id, sizeof(id), "shisha-heuristics-%s", NETWORKS[n]);
        snprintf(title, sizeof(title), "Throughput by heuristic and machine, %s", NETWORKS[n]);
        draw_bars(r, id, title, page_names("machine", SHORT, CONFIGURATIONS),
                  page_axis("throughput / optimum", false, 0, 1.05), H, 6, throughput);
    }
    page_paragraph(
        r->to, NULL,
        "The six machines of the paper's table 2; H1 to H6 as in its table 1. Below: the "
        "tuning time of H3 over that of H1; below 1, H3 is sooner.");
    draw_bars(r, "shisha-h1-h3", "Tuning time of H3 over that of H1",
              page_names("machine", SHORT, CONFIGURATIONS),
              page_axis("time of H3 / time of H1", false, 0, NAN), NETWORKS, NETWORKS_COUNT, pair);
    return 0;
}

/* Throughput by alpha on one machine, as a share of that at the largest alpha. @ret: the points. */
static int alphas(struct psim_report *r, const char *machine, const char *name, json_t **ret)
{
    static const unsigned ALPHAS[] = {1, 2, 5, 10, 20, 50, 100};
    double fps[base_array_count(ALPHAS)];
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    json_t *points;
    int error = psim_case_init("yolov3", PSIM_UNITS, machine, r->error, &c);

    for (size_t i = 0; i < base_array_count(ALPHAS) && !error; i++) {
        struct tun_options options = {.alpha = ALPHAS[i], .heuristic = TUN_HEURISTIC};
        base_cleanup(psim_run_deinit) struct psim_run run = {0};

        error = psim_case_run(r, &c, "shisha", &options, &run);
        fps[i] = 1 / run.bottleneck_ns;
    }
    if (error) {
        return error;
    }
    points = json_array();
    for (size_t i = 0; i < base_array_count(ALPHAS); i++) {
        double share = fps[i] / fps[base_array_count(ALPHAS) - 1];
        char note[96];

        snprintf(note, sizeof(note), "%s, alpha %u: %.3f", name, ALPHAS[i], share);
        page_point(points, ALPHAS[i], share, note);
    }
    *ret = points;
    return 0;
}

int psim_report_alpha(struct psim_report *r)
{
    static const char *const NAMES[] = {"3 times slower", "6 times slower", "12 times slower"};
    static const char *const MACHINES[] = {"shisha-c5", "shisha-c5-6x", "shisha-c5-12x"};
    json_t *chart =
        page_new("shisha-alpha", "Quality against alpha", "lines", page_axis("alpha", true, 1, 100),
                 page_axis("throughput / that of alpha 100", false, 0, 1.1));

    for (size_t m = 0; m < base_array_count(MACHINES); m++) {
        json_t *points;
        int error = alphas(r, MACHINES[m], NAMES[m], &points);

        if (error) {
            json_decref(chart);
            return error;
        }
        page_add(chart, page_series(NAMES[m], points));
    }
    page_chart(r->to, chart);
    page_paragraph(r->to, NULL, "YOLOv3 on four fast and four slow places.");
    return 0;
}
