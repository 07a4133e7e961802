/* SPDX-License-Identifier: Apache-2.0 */
/* What the Pipe-search paper shows of its search: figures 1 and 4, tables 5 and 7. Its figure 3 and
 * table 6 are in report_boards.c. */
#include <math.h>

#include "base/base.h"
#include "tuner/pipesim/report.h"
#include "tuner/search/cuts.h"
#include "tuner/search/places.h"

#define TOP 10u
#define STOP_FPS 0.9 /* section 6.2: where its random walk stops */
#define WALKS 20u    /* of which table 5 has the mean here */

/* The slowest stage, s, of the @TOP best balanced cuts into two stages. */
static int top_ten(struct psim_report *r, const char *setting, char ret_names[TOP][PSIM_CUT_TEXT],
                   json_t *ret_values)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    struct tun_pipeline line = {.stage_count = 2};
    struct tun_cuts *cuts = NULL;
    base_autofree double *weight = NULL;
    int error = psim_case_init("vgg16", PSIM_LAYERS, setting, r->error, &c);

    weight = error ? NULL : tun_cut_weights(&c.truth, false);
    error = error ? error : weight ? tun_cuts_new(weight, c.truth.unit_count, 2, &cuts) : -ENOMEM;
    for (size_t k = 0; k < 2 && !error; k++) { /* Denver, then A57, in both settings */
        line.places[k] = (struct tun_place){.ep = (uint16_t)k, .width = c.truth.eps[k].cores};
    }
    for (size_t i = 0; i < TOP && !error; i++) {
        struct tun_outcome o;
        struct pl_plan plan;

        error = tun_cuts_next(cuts, 2, line.layers);
        tun_pipeline_plan(&line, &plan);
        error = error ? error : tun_eval(&c.truth, &plan, &o);
        psim_cut_text(&plan, ret_names[i]);
        json_array_append_new(ret_values, json_real(error ? 0 : o.bottleneck_ns / 1e9));
    }
    tun_cuts_free(cuts);
    return error;
}

int psim_report_top_ten(struct psim_report *r)
{
    static const char *const SETTINGS[] = {"tx2-2", "tx2-3"};
    static const char *const NAMES[] = {"setting 2: slow Denver", "setting 3: slow A57"};
    char names[TOP][PSIM_CUT_TEXT];
    const char *list[TOP];
    json_t *values[] = {json_array(), json_array()}, *chart;
    int error = 0;

    for (size_t i = 0; i < base_array_count(SETTINGS) && !error; i++) {
        error = top_ten(r, SETTINGS[i], names, values[i]);
    }
    for (size_t i = 0; i < TOP; i++) {
        list[i] = names[i];
    }
    chart = error
                ? NULL
                : page_new("pipe-search-top-ten", "Slowest stage of the best balanced cuts", "bars",
                           page_names("layers of the stages, best balanced first", list, TOP),
                           page_axis("slowest stage, s", false, 0, NAN));
    for (size_t i = 0; i < base_array_count(SETTINGS); i++) {
        if (error) {
            json_decref(values[i]);
        } else {
            page_add(chart, page_bars(NAMES[i], values[i]));
        }
    }
    if (!error) {
        page_chart(r->to, chart);
        page_paragraph(
            r->to, NULL,
            "VGG-16 as 21 layers in two stages, the first on the Denver cores of a Jetson "
            "TX2. Which cut is best depends on the governors, not on the weights alone.");
    }
    return error;
}

/* ---- table 5 ---- */

static int hints_row(struct psim_report *r, const struct psim_case *c, const char *name,
                     const char *algorithm, const struct tun_options *o, size_t runs, double paper,
                     json_t *rows)
{
    double fps = 0, trials = 0, seconds = 0;
    int error = 0;

    for (size_t i = 0; i < runs && !error; i++) {
        base_cleanup(psim_run_deinit) struct psim_run run = {0};
        struct tun_options options = *o;

        options.seed = i;
        error = psim_case_run(r, c, algorithm, &options, &run);
        if (!error) {
            fps += 1e9 / run.bottleneck_ns / (double)runs;
            trials += (double)run.count / (double)runs;
            seconds += run.tuning_s / (double)runs;
        }
    }
    json_array_append_new(rows, json_pack("{s:s, s:f, s:f, s:f, s:f}", "search", name, "fps", fps,
                                          "paper", paper, "trials", trials, "seconds", seconds));
    return error;
}

int psim_report_hints(struct psim_report *r)
{
    static const struct page_column COLUMNS[] = {
        {.heading = "search", .path = "search"},
        {.heading = "frames/s", .path = "fps", .kind = PAGE_NUMBER, .decimals = 2},
        {.heading = "the paper's", .path = "paper", .kind = PAGE_NUMBER, .decimals = 1},
        {.heading = "trials", .path = "trials", .kind = PAGE_NUMBER, .decimals = 1},
        {.heading = "tuning, s", .path = "seconds", .kind = PAGE_NUMBER},
        {0}};
    static const struct tun_options with = {.alpha = 10}, without = {.alpha = 10, .no_hints = true},
                                    random = {.space = TUN_SPACE_CUTS,
                                              .trials_max = SIZE_MAX,
                                              .enough_ns = 1e9 / STOP_FPS};
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    json_auto_t *rows = json_array();
    int error = psim_case_init("vgg16", PSIM_LAYERS, "tx2-1", r->error, &c);

    error = error ? error : hints_row(r, &c, "with hints", "pipe-search", &with, 1, 1.2, rows);
    error =
        error ? error : hints_row(r, &c, "without hints", "pipe-search", &without, 1, 0.6, rows);
    error = error ? error : hints_row(r, &c, "random", "random", &random, WALKS, 0.9, rows);
    if (!error) {
        page_table(r->to, "VGG-16 as 21 layers on a Jetson TX2, governor setting 1, alpha 10",
                   COLUMNS, rows);
        page_paragraph(
            r->to, NULL,
            "Without hints it balances the number of layers. The random walk over the same "
            "configurations stops at %.1f frames/s, as in the paper; the mean of %u.",
            STOP_FPS, WALKS);
    }
    return error;
}

/* ---- table 7 ---- */

static const struct paper_row {
    const char *network;
    const char *setting, *optimum; /* as printed */
    unsigned rank;
} TABLE_7[] = {{"synth1", "tx2-1", "[4,1,1,1]", 6},     {"synth1", "tx2-3", "[5,1,1]", 10},
               {"synth2", "tx2-1", "[4,7,4]", 8},       {"synth2", "tx2-3", "[8,6,1]", 22},
               {"synth3", "tx2-1", "[3,1,2,1,4,2]", 9}, {"synth3", "tx2-3", "[7,4,2]", 22}};

/* A TX2 with all its A57 cores, since the paper's optima have up to six stages. */
static int six_cores(const char *network, const char *setting, char ret_error[PSIM_ERROR_MAX],
                     struct psim_case *ret)
{
    struct psim_case c = PSIM_CASE_NULL;
    int error = psim_platform_load(setting, ret_error, &c.platform);

    error = error ? error : psim_network_load(network, PSIM_UNITS, ret_error, &c.network);
    if (error) {
        return error;
    }
    c.platform.eps[1].ep.cores = 4;
    c.platform.eps[1].gbytes_max *= 2;
    error = psim_problem(&c.network, &c.platform, &c.truth);
    if (error) {
        psim_network_deinit(&c.network);
        return error;
    }
    *ret = c;
    return 0;
}

static int rank_row(struct psim_report *r, const struct paper_row *of, json_t *rows)
{
    base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
    base_cleanup(psim_run_deinit) struct psim_run run = {0};
    struct tun_options options = {.alpha = 15};
    char best[PSIM_CUT_TEXT], found[PSIM_CUT_TEXT];
    struct pl_plan plan;
    double cv, least;
    int error = six_cores(of->network, of->setting, r->error, &c);

    error = error ? error : psim_case_run(r, &c, "pipe-search", &options, &run);
    if (error) {
        return error;
    }
    least = psim_best(&c.truth, TUN_SPACE_CUTS, &plan);
    psim_cut_text(&plan, best);
    psim_cut_text(&run.log[run.result].plan, found);
    json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:I, s:s, s:i, s:s, s:f}", "network",
                                          of->network, "setting", of->setting, "best", best, "rank",
                                          (json_int_t)psim_rank(&c.truth, &plan, &cv), "paper",
                                          of->optimum, "paper_rank", (int)of->rank, "found", found,
                                          "ratio", run.bottleneck_ns / least));
    json_object_set_new(json_array_get(rows, json_array_size(rows) - 1), "cv", json_real(100 * cv));
    return 0;
}

int psim_report_ranks(struct psim_report *r)
{
    static const struct page_column COLUMNS[] = {
        {.heading = "network", .path = "network"},
        {.heading = "machine", .path = "setting"},
        {.heading = "optimum", .path = "best", .kind = PAGE_CODE},
        {.heading = "rank", .path = "rank", .kind = PAGE_NUMBER},
        {.heading = "CV, %", .path = "cv", .kind = PAGE_NUMBER, .decimals = 1},
        {.heading = "the paper's", .path = "paper", .kind = PAGE_CODE},
        {.heading = "its rank", .path = "paper_rank", .kind = PAGE_NUMBER},
        {.heading = "pipe-search", .path = "found", .kind = PAGE_CODE},
        {.heading = "of the optimum", .path = "ratio", .kind = PAGE_NUMBER, .decimals = 3},
        {0}};
    json_auto_t *rows = json_array();
    int error = 0;

    for (size_t i = 0; i < base_array_count(TABLE_7) && !error; i++) {
        error = rank_row(r, &TABLE_7[i], rows);
    }
    if (!error) {
        page_table(r->to, "The best of all cuts, and its place in the order of CV", COLUMNS, rows);
        page_paragraph(
            r->to, NULL,
            "Two Denver and four A57 cores, since the paper's optima have up to six stages. "
            "Governor settings 1 and 3, alpha 15. The rank is the place among the cuts into as "
            "many stages, the seed being 1.");
    }
    return error;
}

/* ---- figure 4 ---- */

/* Share of the first stage in the time of both, %. */
static double first_share(const struct tun_trial *t)
{
    return 100 * t->measured.stage_ns[0] / (t->measured.stage_ns[0] + t->measured.stage_ns[1]);
}

int psim_report_balance(struct psim_report *r)
{
    static const char *const NETWORKS[] = {"resnet50", "alexnet", "vgg16"};
    static const char *const NAMES[] = {"resnet50, seed", "resnet50, end", "alexnet, seed",
                                        "alexnet, end",   "vgg16, seed",   "vgg16, end"};
    struct tun_options options = {.alpha = 15}; /* section 6.4: 3 to 15 */
    json_t *chart, *first = json_array(), *second = json_array();
    int error = 0;

    for (size_t n = 0; n < base_array_count(NETWORKS) && !error; n++) {
        base_cleanup(psim_case_deinit) struct psim_case c = PSIM_CASE_NULL;
        base_cleanup(psim_run_deinit) struct psim_run run = {0};

        error = psim_case_init(NETWORKS[n], PSIM_LAYERS, "tx2-3", r->error, &c);
        c.truth.bounds.stages_max = 2;
        error = error ? error : psim_case_run(r, &c, "pipe-search", &options, &run);
        for (size_t end = 0; end < 2 && !error; end++) {
            double share = first_share(&run.log[end ? run.result : 0]);

            json_array_append_new(first, json_real(share));
            json_array_append_new(second, json_real(100 - share));
        }
    }
    if (error) {
        json_decref(first);
        json_decref(second);
        return error;
    }
    chart = page_new("pipe-search-balance", "Share of two stages in the time of a frame", "bars",
                     page_names("network", NAMES, base_array_count(NAMES)),
                     page_axis("%", false, 0, 100));
    json_object_set_new(chart, "stacked", json_true());
    page_add(chart, page_bars("stage 1: Denver", first));
    page_add(chart, page_bars("stage 2: A57", second));
    page_chart(r->to, chart);
    page_paragraph(
        r->to, NULL,
        "Governor setting 3. The seed balances weights, the end balances times. 50 %% is a "
        "balanced pipeline.");
    return 0;
}
