/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 4 of the hierarchical DSE: what its three experiments have found, over time. */
#include <math.h>

#include "base.h"
#include "tuner/pipesim/dse.h"
#include "tuner/pipesim/report.h"

#define SEEDS 5u

struct traces {
    const struct psim_dse *d;
    struct psim_trace of[PSIM_EXPERIMENTS][SEEDS];
    double exact[3]; /* the ends of the exact front: frames/s, MB, J */
};

static const double *figure(const struct psim_trace *t, size_t which)
{
    return which == 0 ? t->fps : which == 1 ? t->memory_mb : which == 2 ? t->energy_j : t->volume;
}

static void chart(struct psim_report *r, const struct traces *t, size_t which)
{
    static const char *const IDS[] = {"dse-throughput", "dse-memory", "dse-energy", "dse-volume"};
    static const char *const LABELS[] = {"best frames/s", "least memory of a board, MB",
                                         "least energy of a board, J",
                                         "hypervolume, share of the exact front's"};
    static const char *const LEGEND[] = {"1s-NE", "1s-SPE", "3s-2l-SPE", "exact front"};
    struct psim_chart c = {.to = r->to,
                           .id = IDS[which],
                           .x = {.label = "simulated hours", .min = 0, .max = t->d->hours},
                           .y = {.label = LABELS[which], .min = 0, .max = which == 3 ? 1.05 : 0},
                           .legend = LEGEND,
                           .legend_count = base_array_count(LEGEND)};
    double hours[PSIM_SAMPLES], ends[2];

    for (size_t i = 0; i < PSIM_SAMPLES; i++) {
        hours[i] = t->d->hours * (double)i / (PSIM_SAMPLES - 1);
        for (size_t e = 0; e < PSIM_EXPERIMENTS && which < 3; e++) {
            /* NE's first hours would flatten the rest */
            double v = which == 0 || i >= PSIM_SAMPLES / 20 ? figure(&t->of[e][0], which)[i] : 0;

            c.y.max = base_max(c.y.max, 1.15 * v);
        }
    }
    ends[0] = ends[1] = which == 3 ? 1 : t->exact[which];
    c.y.max = base_max(c.y.max, 1.1 * ends[0]);
    psim_svg_begin(&c, LABELS[which]);
    for (size_t e = 0; e < PSIM_EXPERIMENTS; e++) {
        for (size_t s = 0; s < SEEDS; s++) {
            psim_svg_steps(&c, e, hours + 1, figure(&t->of[e][s], which) + 1, PSIM_SAMPLES - 1);
        }
    }
    psim_svg_line(&c, 3, (const double[]){0, t->d->hours}, ends, 2);
    psim_svg_end(&c);
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
    struct traces *t = calloc(1, sizeof(*t));
    struct psim_dse d;
    int error = t ? psim_dse_init("resnet101", true, "xavier-nx-x4", r->error, &d) : -ENOMEM;

    if (error) {
        free(t);
        return error;
    }
    t->d = &d;
    t->exact[1] = t->exact[2] = INFINITY;
    for (size_t i = 0; i < d.front_count; i++) {
        const double *p = d.front + 3 * i;

        t->exact[0] = base_max(t->exact[0], 1e9 / p[0]);
        t->exact[1] = base_min(t->exact[1], p[1] / 1e6);
        t->exact[2] = base_min(t->exact[2], p[2] / 1e9);
    }
    error = run_all(t, r->seed);
    if (!error) {
        fputs("<h2>Searches over boards (hierarchical DSE, figure 4)</h2>\n", r->to);
        for (size_t which = 0; which < 4; which++) {
            chart(r, t, which);
        }
        fprintf(
            r->to,
            "<p>ResNet-101, every node a unit (%zu), on four Xavier NX as described, a CPU and a "
            "GPU each. %u seeds; an evaluation on the boards takes %.0f simulated seconds. The "
            "exact front has %zu mappings of split points. Its last stage begins after two thirds "
            "of the time, so 3s-2l-SPE has only half of the places until then. The best of all "
            "plans, with whole copies, reaches %.1f frames/s.</p>\n",
            d.truth.unit_count, SEEDS, d.evaluation_s, d.front_count, 1e9 / d.best_ns);
    }
    for (int e = 0; e < PSIM_EXPERIMENTS; e++) {
        for (size_t s = 0; s < SEEDS; s++) {
            psim_trace_deinit(&t->of[e][s]);
        }
    }
    free(t);
    psim_dse_deinit(&d);
    return error;
}
