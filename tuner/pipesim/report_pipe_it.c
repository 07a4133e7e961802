/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and figures of the Pipe-it paper, on its board as described. */
#include <math.h>

#include "base/base.h"
#include "tuner/pipesim/report.h"
#include "tuner/pipesim/subject.h"
#include "tuner/search/places.h"

/* The paper's five, and the one of which it tells a gain alone. */
static const char *const NETWORKS[] = {"alexnet",  "googlenet",     "mobilenet_v1",
                                       "resnet50", "squeezenet1_0", "lenet"};
#define FIVE (base_array_count(NETWORKS) - 1)

static double figure(const json_t *row, const char *key, const char *of)
{
    return json_number_value(json_object_get(json_object_get(row, key), of));
}

/* All cores of an EP on one layer at a time: frames/s and frames/J. */
static json_t *alone(const struct tun_problem *p, size_t ep)
{
    double ns = tun_team_ns(p, 0, p->unit_count - 1, ep, p->eps[ep].cores);

    return json_pack("{s:f, s:f}", "fps", 1e9 / ns, "per_joule",
                     1e9 / (ns * p->eps[ep].cores * tun_ep_watts(&p->eps[ep])));
}

/* Mean relative error, in per cent, of what was predicted for an EP on all widths. */
static double error_of(const struct tun_problem *truth, const struct tun_problem *told, size_t ep)
{
    double sum = 0;
    size_t count = 0;

    for (size_t u = 0; u < truth->unit_count; u++) {
        for (size_t w = 1; truth->units[u].gemm_n > 0 && w <= truth->eps[ep].cores; w++, count++) {
            sum += fabs(tun_cell_at(&told->costs, ep, w, u)->ns /
                            tun_cell_at(&truth->costs, ep, w, u)->ns -
                        1);
        }
    }
    return 100 * sum / (double)base_max(count, (size_t)1);
}

static int table_row(struct psim_report *r, const char *network, const char *machine, json_t *rows)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    base_cleanup(tun_problem_deinit) struct tun_problem told = TUN_PROBLEM_NULL;
    json_t *row = json_pack("{s:s, s:s}", "network", network, "machine", machine);
    size_t order[PL_EP_MAX];
    double big;
    int error = psim_case_init(network, PSIM_UNITS, machine, r->error, &c);

    json_array_append_new(rows, row);
    error = error ? error : tun_problem_copy(&c.truth, &told);
    error = error ? error : psim_predict(&c.platform, &told);
    error = error ? error : psim_add_plan(r, &c, &c.truth, "pipe-it", "measured", row);
    error = error ? error : psim_add_plan(r, &c, &told, "pipe-it", "predicted", row);
    error = error ? error : psim_add_plan(r, &c, &c.truth, "exact", "exact", row);
    if (error) {
        return error;
    }
    tun_rank_eps(&c.truth, order);
    json_object_set_new(row, "big", alone(&c.truth, order[0]));
    json_object_set_new(row, "little", alone(&c.truth, order[1]));
    big = figure(row, "big", "fps");
    json_object_update_new(
        row, json_pack("{s:f, s:f, s:f, s:f, s:f}", "gain", figure(row, "measured", "fps") / big,
                       "exact_gain", figure(row, "exact", "fps") / big, "of_measured",
                       figure(row, "predicted", "fps") / figure(row, "measured", "fps"),
                       "error_big", error_of(&c.truth, &told, order[0]), "error_little",
                       error_of(&c.truth, &told, order[1])));
    return 0;
}

#define TWO_DECIMALS(text, from)                                                                   \
    {                                                                                              \
        .heading = text, .path = from, .kind = PAGE_NUMBER, .decimals = 2                          \
    }

int psim_report_pipe_it(struct psim_report *r)
{
    static const char *const MACHINES[] = {"hikey970", "hikey970-3b2s"};
    static const struct page_column GAINS[] = {
        {.heading = "network", .path = "network"},
        {.heading = "machine", .path = "machine"},
        TWO_DECIMALS("big cores", "big.fps"),
        TWO_DECIMALS("little cores", "little.fps"),
        {.heading = "pipe-it", .path = "measured.plan", .kind = PAGE_CODE},
        TWO_DECIMALS("frames/s", "measured.fps"),
        TWO_DECIMALS("of big", "gain"),
        TWO_DECIMALS("exact", "exact.fps"),
        TWO_DECIMALS("of big", "exact_gain"),
        TWO_DECIMALS("frames/J, big", "big.per_joule"),
        TWO_DECIMALS("little", "little.per_joule"),
        TWO_DECIMALS("pipe-it", "measured.per_joule"),
        {0}};
    static const struct page_column PREDICTED[] = {
        {.heading = "network", .path = "network"},
        {.heading = "machine", .path = "machine"},
        {.heading = "by measured costs", .path = "measured.plan", .kind = PAGE_CODE},
        TWO_DECIMALS("frames/s", "measured.fps"),
        {.heading = "by predicted costs", .path = "predicted.plan", .kind = PAGE_CODE},
        TWO_DECIMALS("frames/s", "predicted.fps"),
        TWO_DECIMALS("of measured", "of_measured"),
        {.heading = "error, big, %", .path = "error_big", .kind = PAGE_NUMBER, .decimals = 1},
        {.heading = "little, %", .path = "error_little", .kind = PAGE_NUMBER, .decimals = 1},
        {0}};
    json_auto_t *rows = json_array();
    int error = 0;

    for (size_t i = 0; i < 2 * base_array_count(NETWORKS) && !error; i++) {
        error = table_row(r, NETWORKS[i / 2], MACHINES[i % 2], rows);
    }
    if (!error) {
        page_table(r->to, "Six networks on a Hikey 970, whole and in part (tables IV, VII, VIII)",
                   GAINS, rows);
        page_paragraph(r->to, NULL,
                       "The Hikey 970 as described: four A73 and four A53 cores, or three and two. "
                       "Big and little cores: all of them on one layer at a time. Exact has stages "
                       "of several teams, too. Energy is of busy cores, as described.");
        page_table(r->to, "The same by measured and by predicted costs (tables III, V, VI)",
                   PREDICTED, rows);
        page_paragraph(
            r->to, NULL,
            "Predicted: by equations 5 to 8, fitted to what the paper's grid of shapes takes on "
            "the described machine. Error: mean over layers and widths of a team. A described "
            "machine is smoother than a real one: pipesim compare --predict --sigma adds errors.");
    }
    return error;
}

/* ---- figures 8 and 9: where to cut ---- */

/* @ends: [@count] one past each stage's last unit; the first stage has all big cores, the others
 * share the little ones evenly. */
static double split_fps(const struct tun_problem *p, const size_t *ends, size_t count)
{
    double longest = 0;

    for (size_t s = 0, first = 0; s < count; first = ends[s++]) {
        size_t cores = p->eps[s > 0].cores / (s > 0 ? count - 1 : 1);

        if (ends[s] > first) {
            longest = base_max(longest, tun_team_ns(p, first, ends[s] - 1, s > 0, cores));
        }
    }
    return 1e9 / longest;
}

/* Two stages, X of W layers in the first: relative to the best X. @ret: the best, frames/s. */
static json_t *two_stages(const struct tun_problem *p, double *ret)
{
    json_t *points = json_array();
    size_t count = p->unit_count;

    *ret = 0;
    for (size_t x = 0; x <= count; x++) {
        *ret = base_max(*ret, split_fps(p, (size_t[]){x, count}, 2));
    }
    for (size_t x = 0; x <= count; x++) {
        double fps = split_fps(p, (size_t[]){x, count}, 2);
        char note[64];

        snprintf(note, sizeof(note), "%zu of %zu layers: %.2f frames/s", x, count, fps);
        page_point(points, (double)x / (double)count, fps / *ret, note);
    }
    return points;
}

/* Three stages (figure 9) of ResNet-50: a line for each of some X1 around the best. */
static void three_stages(struct psim_report *r, const struct tun_problem *p, double two)
{
    json_t *chart = page_new("pipe-it-three", "ResNet-50 in three stages, B4-s2-s2", "lines",
                             page_axis("layers before the third stage", false, 0, NAN),
                             page_axis("frames/s", false, 0, NAN));
    size_t count = p->unit_count, best[2] = {0};
    double most = 0;

    for (size_t a = 0; a <= count; a++) {
        for (size_t b = a; b <= count; b++) {
            double fps = split_fps(p, (size_t[]){a, b, count}, 3);

            best[0] = fps > most ? a : best[0];
            best[1] = fps > most ? b : best[1];
            most = base_max(most, fps);
        }
    }
    for (size_t a = best[0] > 8 ? best[0] - 8 : 0; a <= base_min(best[0] + 8, count); a += 4) {
        json_t *points = json_array();
        char name[32];

        snprintf(name, sizeof(name), "%zu in the first", a);
        for (size_t b = a; b <= count; b++) {
            page_point(points, (double)b, split_fps(p, (size_t[]){a, b, count}, 3), NULL);
        }
        page_add(chart, page_series(name, points));
    }
    page_chart(r->to, chart);
    page_paragraph(
        r->to, NULL,
        "Best with %zu layers in the first stage and %zu before the third: %.2f frames/s, "
        "%.0f %% more than the best two stages (the paper: 33, 45, 5.6 and 7 %%).",
        best[0], best[1], most, 100 * (most / two - 1));
}

int psim_report_splits(struct psim_report *r)
{
    json_t *chart = page_new("pipe-it-two", "Two stages, B4-s4", "lines",
                             page_axis("share of the layers on big cores", false, 0, 1),
                             page_axis("throughput / that of the best split", false, 0, 1.05));
    int error = 0;

    for (size_t n = 0; n < FIVE && !error; n++) {
        base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
        double two;

        error = psim_case_init(NETWORKS[n], PSIM_UNITS, "hikey970", r->error, &c);
        if (!error) {
            page_add(chart, page_series(NETWORKS[n], two_stages(&c.truth, &two)));
        }
        if (!error && strcmp(NETWORKS[n], "resnet50") == 0) {
            three_stages(r, &c.truth, two);
        }
    }
    if (error) {
        json_decref(chart);
        return error;
    }
    page_chart(r->to, chart);
    return 0;
}

/* Figure 12: the convolutions of AlexNet. */
int psim_report_speed_up(struct psim_report *r)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    int error = psim_case_init("alexnet", PSIM_UNITS, "hikey970", r->error, &c);

    for (size_t k = 0; !error && k < c.truth.ep_count; k++) {
        char id[64], title[128];
        json_t *chart;

        snprintf(id, sizeof(id), "pipe-it-speed-up-%zu", k);
        snprintf(title, sizeof(title), "AlexNet's convolutions on %s cores", c.truth.eps[k].name);
        chart = page_new(id, title, "lines", page_axis("cores", false, 1, 4),
                         page_axis("speed-up", false, 0, 4));
        for (size_t u = 0; u < c.truth.unit_count; u++) {
            json_t *points;

            if (c.network.units[u].layer != PSIM_CONV) {
                continue;
            }
            points = json_array();
            for (size_t w = 1; w <= c.truth.eps[k].cores; w++) {
                page_point(points, (double)w,
                           tun_cell_at(&c.truth.costs, k, 1, u)->ns /
                               tun_cell_at(&c.truth.costs, k, w, u)->ns,
                           NULL);
            }
            page_add(chart, page_series(c.network.units[u].name, points));
        }
        page_chart(r->to, chart);
    }
    if (!error) {
        page_paragraph(r->to, NULL,
                       "As described: Amdahl's law with one share of serial work an execution "
                       "place, and overhead and memory, which do not shrink. The paper's curves "
                       "are measured, and bend differently for each layer.");
    }
    return error;
}
