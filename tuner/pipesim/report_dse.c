/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 4 of the hierarchical DSE: what its three experiments have found, over time. */
#include "base/base.h"
#include "tuner/pipesim/dse.h"
#include "tuner/pipesim/report.h"

#define SEEDS 5u

struct traces {
    const struct psim_dse *d;
    struct psim_trace of[PSIM_EXPERIMENTS][SEEDS];
};

static json_t *points_of(const double *hours, const double *values)
{
    json_t *points = json_array();

    for (size_t i = 1; i < PSIM_SAMPLES; i++) {
        page_point(points, hours[i], values[i], NULL);
    }
    return points;
}

static void draw(struct psim_report *r, const struct traces *t, size_t which)
{
    static const char *const IDS[] = {"dse-throughput", "dse-memory", "dse-energy", "dse-volume"};
    static const char *const LABELS[] = {"best frames/s", "least memory of a board, MB",
                                         "least energy of a board, J",
                                         "share of the exact front's"};
    static const char *const TITLES[] = {"Best throughput", "Least memory of a board",
                                         "Least energy of a board", "Hypervolume"};
    double hours[PSIM_SAMPLES], most = which == PSIM_VOLUME ? 1.05 : 0,
                                end = which == PSIM_VOLUME ? 1 : t->d->best[which];
    json_t *chart, *ends = json_array(), *s;

    for (size_t i = 0; i < PSIM_SAMPLES; i++) {
        hours[i] = t->d->hours * (double)i / (PSIM_SAMPLES - 1);
        for (size_t e = 0; e < PSIM_EXPERIMENTS && which != PSIM_VOLUME; e++) {
            /* NE's first hours would flatten the rest */
            double v =
                which == PSIM_FPS || i >= PSIM_SAMPLES / 20 ? t->of[e][0].found[which][i] : 0;

            most = base_max(most, 1.15 * v);
        }
    }
    chart = page_new(IDS[which], TITLES[which], "lines",
                     page_axis("simulated hours", false, 0, t->d->hours),
                     page_axis(LABELS[which], false, 0, base_max(most, 1.1 * end)));
    json_object_set_new(chart, "last", json_true());
    for (size_t e = 0; e < PSIM_EXPERIMENTS; e++) {
        for (size_t i = 0; i < SEEDS; i++) {
            s = page_series(i == 0 ? psim_experiment_names[e] : NULL,
                            points_of(hours, t->of[e][i].found[which]));
            json_object_set_new(s, "steps", json_true());
            json_object_set_new(s, "colour", json_integer((json_int_t)e));
            page_add(chart, s);
        }
    }
    page_point(ends, 0, end, NULL);
    page_point(ends, t->d->hours, end, NULL);
    s = page_series("exact front", ends);
    json_object_set_new(s, "colour", json_integer(PSIM_EXPERIMENTS));
    json_object_set_new(s, "dashed", json_true());
    page_add(chart, s);
    page_chart(r->to, chart);
}

static int run_all(struct traces *t, uint64_t seed)
{
    int error = 0;

    for (int e = 0; e < PSIM_EXPERIMENTS; e++) {
        for (size_t s = 0; s < SEEDS && !error; s++) {
            error = psim_dse_run(t->d, (enum psim_experiment)e, seed + s, &t->of[e][s]);
        }
    }
    return error;
}

int psim_report_dse(struct psim_report *r)
{
    base_autofree struct traces *t = calloc(1, sizeof(*t));
    base_cleanup(psim_dse_deinit) struct psim_dse d = {0};
    int error = t ? psim_dse_init("resnet101", true, "xavier-nx-x4", r->error, &d) : -ENOMEM;

    if (error) {
        return error;
    }
    t->d = &d;
    error = run_all(t, r->seed);
    if (!error) {
        for (size_t which = 0; which < PSIM_FIGURES; which++) {
            draw(r, t, which);
        }
        page_paragraph(
            r->to, NULL,
            "ResNet-101, every node a unit (%zu), on four Xavier NX as described, a CPU and a "
            "GPU each. %u seeds; an evaluation on the boards takes %.0f simulated seconds. The "
            "exact front has %zu mappings of split points. The last stage of 3s-2l-SPE begins "
            "after %.0f hours; until then it has only half of the places. The best of all plans, "
            "with whole copies, reaches %.1f frames/s.",
            d.truth.unit_count, SEEDS, d.evaluation_s, d.front_count, d.early * d.hours,
            1e9 / d.best_ns);
    }
    for (int e = 0; e < PSIM_EXPERIMENTS; e++) {
        for (size_t s = 0; s < SEEDS; s++) {
            psim_trace_deinit(&t->of[e][s]);
        }
    }
    return error;
}
