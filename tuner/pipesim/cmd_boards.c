/* SPDX-License-Identifier: Apache-2.0 */
/* The hierarchical DSE's experiments over boards, side by side over seeds. */
#include "base/base.h"
#include "base/json_text.h"
#include "tuner/pipesim/dse.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

/* {experiment, hour, fps: [least, mean, most], ...}. */
static void add_rows(const struct psim_dse *d, enum psim_experiment e,
                     const struct psim_trace *traces, size_t count, json_t *rows)
{
    static const double SHARES[] = {1 / 7.0, 2 / 7.0, 4 / 7.0, 1};

    for (size_t i = 0; i < base_array_count(SHARES); i++) {
        json_t *row = json_pack("{s:s, s:f}", "experiment", psim_experiment_names[e], "hour",
                                SHARES[i] * d->hours);

        for (size_t f = 0; f < PSIM_FIGURES; f++) {
            struct psim_spread s =
                psim_spread(d, traces, count, (enum psim_figure)f, SHARES[i] * d->hours);

            json_object_set_new(row, psim_figure_names[f],
                                json_pack("[f, f, f]", s.least, s.mean, s.most));
        }
        json_array_append_new(rows, row);
    }
}

static json_t *front_json(const struct psim_dse *d)
{
    json_t *list = json_array();

    for (size_t i = 0; i < d->front_count; i++) {
        const double *p = d->front + i * 3;

        json_array_append_new(list, json_pack("{s:f, s:f, s:f}", "fps", 1e9 / p[0], "memory_mb",
                                              p[1] / 1e6, "energy_j", p[2] / 1e9));
    }
    return list;
}

static void print_text(const struct psim_dse *d, const struct psim_options *b, const json_t *rows)
{
    struct cli_table table = {.align = "lrrrrr"};

    shown_printf("%s on %s: %zu units, %zu places, %.0f s an evaluation, %u seeds\n"
                 "exact front of split points: %zu mappings; best %.2f frames/s, %.1f MB, %.3f J\n"
                 "best of all plans: %.2f frames/s\n\n",
                 b->model, b->platform, d->truth.unit_count, d->truth.ep_count, d->evaluation_s,
                 b->seeds, d->front_count, d->best[PSIM_FPS], d->best[PSIM_MEMORY_MB],
                 d->best[PSIM_ENERGY_J], 1e9 / d->best_ns);
    cli_table_add(&table, "experiment\thour\tframes/s\tMB\tJ\thypervolume %%");
    json_text_each(rows, i, row) {
        double v[PSIM_FIGURES][3];

        for (size_t f = 0; f < PSIM_FIGURES; f++) {
            json_unpack(json_object_get(row, psim_figure_names[f]), "[F, F, F]", &v[f][0], &v[f][1],
                        &v[f][2]);
        }
        cli_table_add(
            &table,
            "%s\t%.0f\t%.2f (%.2f-%.2f)\t%.1f (%.1f-%.1f)\t%.3f (%.3f-%.3f)\t%.1f (%.1f-%.1f)",
            json_string_value(json_object_get(row, "experiment")),
            json_number_value(json_object_get(row, "hour")), v[0][1], v[0][0], v[0][2], v[1][1],
            v[1][0], v[1][2], v[2][1], v[2][0], v[2][2], 100 * v[3][1], 100 * v[3][0],
            100 * v[3][2]);
    }
    cli_table_print(&table);
    puts("\nmean (least-most) over the seeds of the best found so far");
}

static int run_all(const struct psim_dse *d, const struct psim_options *b, json_t *rows)
{
    base_autofree struct psim_trace *traces = calloc(b->seeds, sizeof(*traces));
    int error = traces ? 0 : -ENOMEM;

    for (int e = 0; e < PSIM_EXPERIMENTS && !error; e++) {
        size_t count = 0;

        while (!error && count < b->seeds) {
            error = psim_dse_run(d, (enum psim_experiment)e, b->seed + count, &traces[count]);
            count += !error;
        }
        if (!error) {
            add_rows(d, (enum psim_experiment)e, traces, count, rows);
        }
        for (size_t i = 0; i < count; i++) {
            psim_trace_deinit(&traces[i]);
        }
    }
    return error;
}

static int boards(const struct psim_options *b)
{
    char error[PSIM_ERROR_MAX] = "";
    json_auto_t *rows = json_array();
    base_cleanup(psim_dse_deinit) struct psim_dse d = {0};
    int result;

    if (psim_dse_init(b->model, !b->units, b->platform, error, &d) != 0) {
        return psim_fail("%s", error);
    }
    d.hours = b->hours;
    d.evaluation_s = b->evaluation_s;
    d.sigma = b->sigma;
    d.early = b->early;
    result = run_all(&d, b, rows);
    if (result) {
        return psim_fail("%s", strerror(-result));
    }
    if (b->json) {
        return psim_print_json(json_pack("{s:O, s:o, s:f}", "runs", rows, "front", front_json(&d),
                                         "best_fps", 1e9 / d.best_ns));
    }
    print_text(&d, b, rows);
    return PSIM_DONE;
}

int psim_cmd_boards(int argc, char **argv)
{
    struct psim_options o = {.model = "resnet101",
                             .platform = "xavier-nx-x4",
                             .seeds = 5,
                             .seed = 1,
                             .hours = 70,
                             .evaluation_s = 12,
                             .sigma = 0.1,
                             .early = PSIM_EARLY};
    int code = psim_options(argc, argv, &o);

    return code ? code : boards(&o);
}
