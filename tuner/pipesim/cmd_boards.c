/* SPDX-License-Identifier: Apache-2.0 */
/* The hierarchical DSE's experiments over boards, side by side over seeds. */
#include <math.h>

#include "base/base.h"
#include "base/cli/shown_print.h"
#include "tuner/pipesim/dse.h"
#include "tuner/pipesim/pipesim.h"
#include "tuner/pipesim/subject.h"

#define COMMAND "boards"
#define SEEDS_MAX 1000.0

struct boards {
    const char *model, *platform;
    bool units, json;
    double seeds, seed, hours, evaluation_s, sigma, early;
};

/* Least, mean and largest over the seeds of a figure at an hour. */
struct spread {
    double least, mean, most;
};

static struct spread spread_of(const struct psim_trace *traces, size_t count, size_t at,
                               size_t offset)
{
    struct spread s = {INFINITY, 0, -INFINITY};

    for (size_t i = 0; i < count; i++) {
        const double *figures = (const double *)(const void *)((const char *)&traces[i] + offset);

        s.least = fmin(s.least, figures[at]);
        s.most = fmax(s.most, figures[at]);
        s.mean += figures[at] / (double)count;
    }
    return s;
}

static const struct figure {
    const char *key;
    size_t offset;
} FIGURES[] = {{"fps", offsetof(struct psim_trace, fps)},
               {"memory_mb", offsetof(struct psim_trace, memory_mb)},
               {"energy_j", offsetof(struct psim_trace, energy_j)},
               {"volume", offsetof(struct psim_trace, volume)}};

static json_t *spread_json(const struct psim_trace *traces, size_t count, size_t at, size_t offset)
{
    struct spread s = spread_of(traces, count, at, offset);

    return json_pack("[f, f, f]", s.least, s.mean, s.most);
}

/* {experiment, hour, fps: [least, mean, most], ...}. */
static void add_rows(const struct psim_dse *d, enum psim_experiment e,
                     const struct psim_trace *traces, size_t count, json_t *rows)
{
    static const double SHARES[] = {1 / 7.0, 2 / 7.0, 4 / 7.0, 1};

    for (size_t i = 0; i < base_array_count(SHARES); i++) {
        size_t at = psim_trace_at(d, SHARES[i] * d->hours);
        json_t *row = json_pack("{s:s, s:f}", "experiment", psim_experiment_names[e], "hour",
                                SHARES[i] * d->hours);

        for (size_t f = 0; f < base_array_count(FIGURES); f++) {
            json_object_set_new(row, FIGURES[f].key,
                                spread_json(traces, count, at, FIGURES[f].offset));
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

static void print_text(const struct psim_dse *d, const struct boards *b, const json_t *rows)
{
    json_t *table = json_array();
    double least[3] = {INFINITY, INFINITY, INFINITY};
    const json_t *row;
    size_t i;

    for (i = 0; i < d->front_count; i++) {
        for (size_t k = 0; k < 3; k++) {
            least[k] = fmin(least[k], d->front[i * 3 + k]);
        }
    }
    shown_printf("%s on %s: %zu units, %zu places, %.0f s an evaluation, %.0f seeds\n"
                 "exact front of split points: %zu mappings; best %.2f frames/s, %.1f MB, %.3f J\n"
                 "best of all plans: %.2f frames/s\n\n",
                 b->model, b->platform, d->truth.unit_count, d->truth.ep_count, d->evaluation_s,
                 b->seeds, d->front_count, 1e9 / least[0], least[1] / 1e6, least[2] / 1e9,
                 1e9 / d->best_ns);
    psim_row(table, "experiment\thour\tframes/s\tMB\tJ\thypervolume %%");
    json_array_foreach(rows, i, row)
    {
        double v[4][3];

        for (size_t f = 0; f < base_array_count(FIGURES); f++) {
            for (size_t k = 0; k < 3; k++) {
                v[f][k] =
                    json_number_value(json_array_get(json_object_get(row, FIGURES[f].key), k));
            }
        }
        psim_row(table,
                 "%s\t%.0f\t%.2f (%.2f-%.2f)\t%.1f (%.1f-%.1f)\t%.3f (%.3f-%.3f)\t%.1f (%.1f-%.1f)",
                 json_string_value(json_object_get(row, "experiment")),
                 json_number_value(json_object_get(row, "hour")), v[0][1], v[0][0], v[0][2],
                 v[1][1], v[1][0], v[1][2], v[2][1], v[2][0], v[2][2], 100 * v[3][1], 100 * v[3][0],
                 100 * v[3][2]);
    }
    psim_print_rows(table, "lrrrrr");
    puts("\nmean (least-most) over the seeds of the best found so far");
}

static int run_all(const struct psim_dse *d, const struct boards *b, json_t *rows)
{
    struct psim_trace *traces = calloc((size_t)b->seeds, sizeof(*traces));
    int error = traces ? 0 : -ENOMEM;

    for (int e = 0; e < PSIM_EXPERIMENTS && !error; e++) {
        size_t count = 0;

        while (!error && count < (size_t)b->seeds) {
            error =
                psim_dse_run(d, (enum psim_experiment)e, (uint64_t)b->seed + count, &traces[count]);
            count += !error;
        }
        if (!error) {
            add_rows(d, (enum psim_experiment)e, traces, count, rows);
        }
        for (size_t i = 0; i < count; i++) {
            psim_trace_deinit(&traces[i]);
        }
    }
    free(traces);
    return error;
}

static int boards(const struct boards *b)
{
    char error[PSIM_ERROR_MAX] = "";
    json_t *rows = json_array();
    struct psim_dse d;
    int code = PSIM_DONE, result;

    if (psim_dse_init(b->model, !b->units, b->platform, error, &d) != 0) {
        psim_say("%s", error);
        json_decref(rows);
        return PSIM_FAILED;
    }
    d.hours = b->hours;
    d.evaluation_s = b->evaluation_s;
    d.sigma = b->sigma;
    d.early = b->early;
    result = run_all(&d, b, rows);
    if (result) {
        psim_say("%s", strerror(-result));
        code = PSIM_FAILED;
    } else if (b->json) {
        code = psim_print_json(json_pack("{s:O, s:o, s:f}", "runs", rows, "front", front_json(&d),
                                         "best_fps", 1e9 / d.best_ns));
    } else {
        print_text(&d, b, rows);
    }
    psim_dse_deinit(&d);
    json_decref(rows);
    return code;
}

static bool number(const char *option, double least, double most, bool whole, double *ret)
{
    if (!psim_option_number(COMMAND, option, optarg, least, most, ret)) {
        return false;
    }
    if (whole && *ret != floor(*ret)) {
        psim_usage(COMMAND, "--%s needs a whole number, not '%s'", option, optarg);
        return false;
    }
    return true;
}

int psim_cmd_boards(int argc, char **argv)
{
    struct boards b = {.model = "resnet101",
                       .platform = "xavier-nx-x4",
                       .seeds = 5,
                       .seed = 1,
                       .hours = 70,
                       .evaluation_s = 12,
                       .sigma = 0.1};
    int option;
    bool ok = true;

    while (ok && (option = psim_option(argc, argv)) != -1) {
        switch (option) {
        case 'h':
            psim_help(stdout, COMMAND);
            return PSIM_DONE;
        case 'm':
            b.model = optarg;
            break;
        case 'p':
            b.platform = optarg;
            break;
        case 'u':
            b.units = true;
            break;
        case 'j':
            b.json = true;
            break;
        case 'n':
            ok = number("seeds", 1, SEEDS_MAX, true, &b.seeds);
            break;
        case 's':
            ok = number("seed", 0, 9007199254740992.0, true, &b.seed);
            break;
        case 'H':
            ok = number("hours", 0.1, 10000, false, &b.hours);
            break;
        case 'e':
            ok = number("evaluation", 0.1, 100000, false, &b.evaluation_s);
            break;
        case 'g':
            ok = number("sigma", 0, 1, false, &b.sigma);
            break;
        case 'E':
            ok = number("early", 0, 1, false, &b.early);
            break;
        default:
            return psim_bad_option(COMMAND, option, argv);
        }
    }
    if (!ok) {
        return PSIM_USAGE;
    }
    return optind < argc ? psim_usage(COMMAND, "unexpected argument '%s'", argv[optind])
                         : boards(&b);
}
