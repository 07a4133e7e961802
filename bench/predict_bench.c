/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_bench - how well micro-benchmarks foretell the units of real networks
 * (Pipe-it, tables III, V and VI)
 *
 *     predict_bench CPUS FRAMES [--grid] MODEL...
 *     predict_bench 0-1 20 model/networks/squeezenet1_1.json
 *
 * Runs the chain of the calibration on teams of 1, 2, 4, ... of these cores, fits the predictor,
 * runs each model at the same widths and prints the mean and median relative error over its units
 * and of their sum, also of depthwise units alone. Of every unit the quickest frame counts, in
 * both. Then Pipe-it plans each model on two execution places of half of the cores each, by the
 * predicted and by the measured times, and the measured ones say what either plan does.
 *
 * --grid: convolutions are fitted to the 900 shapes of the paper's section V-B as well, 2.0e12
 * multiply-accumulates a frame, and what that foretells is printed below the chain's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/profile.h"
#include "kernels/kernels.h"
#include "pipeline/pipeline.h"
#include "tuner/learn.h"
#include "tuner/search/search.h"

struct net {
    struct mdl_model *model;
    struct krn_net *net;
    uint8_t *memory;
};

static int net_load(const char *path, struct net *ret)
{
    struct mdl_load_options options = {.const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX] = "out of memory";
    size_t bytes = 0;

    if (mdl_load(path, &options, error, &ret->model) < 0 ||
        krn_net_new(ret->model, NULL, error, &ret->net) < 0) {
        fprintf(stderr, "%s\n", error);
        return -EINVAL;
    }
    for (size_t i = 0; i < ret->model->input_count; i++) {
        bytes += base_align_up(ret->model->inputs[i].bytes, 64);
    }
    for (size_t i = 0; i < ret->model->output_count; i++) {
        bytes += base_align_up(ret->model->outputs[i].bytes, 64);
    }
    ret->memory = calloc(1, bytes);
    return ret->memory ? 0 : -ENOMEM;
}

static void net_deinit(struct net *n)
{
    krn_net_free(n->net);
    mdl_free(n->model);
    free(n->memory);
}

static void wake(void *arg)
{
    (void)!write(*(int *)arg, "", 1);
}

static void submit(struct pl_pipeline *pipe, const struct net *n)
{
    struct pl_frame *f = pl_frame_get(pipe);
    size_t at = 0;

    for (size_t i = 0; i < n->model->input_count; i++) {
        f->inputs[i] = n->memory + at;
        at += base_align_up(n->model->inputs[i].bytes, 64);
    }
    for (size_t i = 0; i < n->model->output_count; i++) {
        f->outputs[i] = n->memory + at;
        at += base_align_up(n->model->outputs[i].bytes, 64);
    }
    pl_submit(pipe, f);
}

/* @ret_ns: [unit_count], the quickest of @frames. */
static int run(const struct net *n, const struct pl_ep_set *eps, size_t width, size_t frames,
               double *ret_ns)
{
    struct pl_plan plan = {.stage_count = 1};
    struct pl_pipeline *pipe;
    int ends[2], error;

    plan.stages[0] = (struct pl_stage_plan){.last_unit = (uint16_t)(n->model->unit_count - 1),
                                            .group_count = 1,
                                            .groups = {{.width = (uint16_t)width, .count = 1}}};
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    error =
        pl_new(n->net, eps, &plan,
               &(struct pl_options){.frames = 2, .notify = wake, .notify_arg = &ends[1]}, &pipe);
    for (size_t i = 0; i < frames && !error; i++) {
        struct pl_frame *f;
        char byte;

        submit(pipe, n);
        while (!(f = pl_collect(pipe))) {
            (void)!read(ends[0], &byte, 1);
        }
        pl_frame_put(pipe, f);
    }
    for (size_t u = 0; u < n->model->unit_count && !error; u++) {
        struct pl_series stats;

        pl_unit_stats(pipe, u, &stats);
        ret_ns[u] = stats.min_ns;
    }
    if (!error) {
        pl_free(pipe);
    }
    close(ends[0]);
    close(ends[1]);
    return error;
}

static size_t next_width(size_t width, size_t cores)
{
    return width == cores ? cores + 1 : base_min(2 * width, cores);
}

#define BENCH_MAX 16384u
#define FRAMES_OF_GRID 3u

struct benches {
    struct tun_bench *rows; /* [BENCH_MAX], owned */
    size_t count;
};

/* Adds what a network of micro-benchmarks takes at each width. Removes its description. */
static int measure(char *path, const struct pl_ep_set *eps, size_t frames, struct benches *ret)
{
    struct net n = {0};
    base_autofree double *ns = NULL;
    size_t cores = eps->eps[0].cpu_count;
    int error = net_load(path, &n);

    unlink(path);
    free(path);
    if (!error) {
        ns = calloc(n.model->unit_count, sizeof(*ns));
        error = ns ? 0 : -ENOMEM;
    }
    for (size_t w = 1; w <= cores && !error; w = next_width(w, cores)) {
        error = run(&n, eps, w, frames, ns);
        for (size_t u = 0; !error && u < n.model->unit_count && ret->count < BENCH_MAX; u++) {
            struct tun_bench *b = &ret->rows[ret->count];

            ret->count += dmn_unit_gemm(n.model, u, b);
            b->width = (uint16_t)w;
            b->ns = ns[u];
        }
    }
    net_deinit(&n);
    return error;
}

/* The paper's 36 pairs of channels for one image and filter, as a chain: a cyclic list in which
 * no pair of neighbours comes twice (de Bruijn), so every layer has a pair of its own. */
static int write_grid(size_t image, size_t filter, char **ret_path)
{
    static const unsigned channels[] = {32, 64, 92, 128, 192, 256};
    unsigned list[37];
    size_t count = 0;
    char *path = strdup("/tmp/predict-XXXXXX.json");
    int fd = path ? mkostemps(path, 5, O_CLOEXEC) : -1;
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f) {
        free(path);
        return -ENOMEM;
    }
    for (size_t a = 0; a < 6; a++) {
        list[count++] = channels[a];
        for (size_t b = a + 1; b < 6; b++) {
            list[count++] = channels[a];
            list[count++] = channels[b];
        }
    }
    list[count] = list[0];
    fprintf(
        f,
        "{\"name\": \"grid\", \"seed\": 1, \"input\": {\"shape\": [%u, %zu, %zu]}, \"layers\": [",
        list[0], image, image);
    for (size_t i = 1; i <= count; i++) {
        fprintf(f,
                "%s\n{\"op\": \"conv\", \"out\": %u, \"kernel\": %zu, \"pad\": \"same\", \"act\": "
                "\"relu\"}",
                i > 1 ? "," : "", list[i], filter);
    }
    fputs("]}\n", f);
    *ret_path = path;
    return fclose(f) == 0 ? 0 : -errno;
}

/* @ret: by the chain, and, with @grid, by the grid with the chain's other layers. Return: how many
 * were fitted; < 0: -errno. */
static int calibrate(const struct pl_ep_set *eps, size_t frames, bool grid,
                     struct tun_predictor ret[2])
{
    static const size_t images[] = {7, 14, 28, 56, 112}, filters[] = {1, 3, 5, 7, 11};
    struct benches b = {.rows = calloc(BENCH_MAX, sizeof(*b.rows))};
    char *path;
    int error = b.rows ? dmn_profile_write_net("/tmp", &path) : -ENOMEM;

    error = error ? error : measure(path, eps, frames, &b);
    error = error ? error : tun_predictor_fit(b.rows, b.count, &ret[0]);
    if (grid && !error) {
        size_t kept = 0;

        for (size_t i = 0; i < b.count; i++) {
            b.rows[kept] = b.rows[i];
            kept += b.rows[i].layer == TUN_DEPTHWISE || b.rows[i].n == 1;
        }
        b.count = kept;
        for (size_t i = 0; i < 25 && !error; i++) {
            error = write_grid(images[i % 5], filters[i / 5], &path);
            error =
                error ? error : measure(path, eps, base_min(frames, (size_t)FRAMES_OF_GRID), &b);
        }
        error = error ? error : tun_predictor_fit(b.rows, b.count, &ret[1]);
    }
    free(b.rows);
    return error ? error : 1 + grid;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* @ret_ns: [unit_count], as predicted; < 0: it is not. */
static void predict(const struct net *n, const struct tun_predictor *p, size_t width,
                    double *ret_ns)
{
    for (size_t u = 0; u < n->model->unit_count; u++) {
        struct tun_bench of = {.width = (uint16_t)width};

        ret_ns[u] = dmn_unit_gemm(n->model, u, &of) ? tun_predict_ns(p, &of) : -1;
    }
}

/* @scratch: [2][unit_count]. */
static void compare(const char *by, const struct net *n, const double *ns, size_t width,
                    const struct tun_predictor *p, double *scratch)
{
    double sum = 0, predicted_ns = 0, measured_ns = 0, depthwise = 0;
    double *guess = scratch + n->model->unit_count;
    size_t covered = 0, depthwise_count = 0;

    predict(n, p, width, guess);
    for (size_t u = 0; u < n->model->unit_count; u++) {
        struct tun_bench of;

        if (guess[u] < 0 || !(ns[u] > 0)) { /* not predicted, or every frame was disturbed */
            continue;
        }
        scratch[covered] = fabs(guess[u] / ns[u] - 1);
        dmn_unit_gemm(n->model, u, &of);
        depthwise += of.layer == TUN_DEPTHWISE ? scratch[covered] : 0;
        depthwise_count += of.layer == TUN_DEPTHWISE;
        sum += scratch[covered++];
        predicted_ns += guess[u];
        measured_ns += ns[u];
    }
    if (covered == 0) {
        printf("%-16s %-5s %5zu  disturbed\n", n->model->name, by, width);
        return;
    }
    qsort(scratch, covered, sizeof(*scratch), rising);
    printf("%-16s %-5s %5zu  %3zu of %3zu  %9.2f  %9.2f  %6.1f %%  %6.1f %%  %6.1f %%  %6.1f %%\n",
           n->model->name, by, width, covered, n->model->unit_count, measured_ns / 1e6,
           predicted_ns / 1e6, 100 * sum / (double)covered, 100 * scratch[covered / 2],
           100 * depthwise / (double)base_max(depthwise_count, (size_t)1),
           100 * (predicted_ns / measured_ns - 1));
}

/* ---- plans by either table ---- */

#define WIDTHS 10u

/* The times of a network, [WIDTHS][unit_count]: measured, and by the chain. */
struct times {
    size_t count, widths[WIDTHS];
    double *measured, *predicted; /* owned */
};

/* Two EPs of half of the cores. Units that are not predicted have their measured times. */
static int table(const struct net *n, const struct times *t, size_t cores, bool predicted,
                 struct tun_problem *ret)
{
    static const char *const names[] = {"a", "b"};
    struct tun_ep eps[2];
    size_t units = n->model->unit_count;

    for (size_t k = 0; k < 2; k++) {
        eps[k] = (struct tun_ep){.cores = (uint16_t)(cores / 2), .speed = 1, .bandwidth = 1};
        snprintf(eps[k].name, sizeof(eps[k].name), "%s", names[k]);
    }
    if (tun_problem_init(ret, units, eps, 2) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        for (size_t u = 0; u < units; u++) {
            double guess = t->predicted[i * units + u];
            double ns = predicted && guess > 0 ? guess : t->measured[i * units + u];

            for (size_t k = 0; k < 2 && t->widths[i] <= cores / 2; k++) {
                *tun_cell_at(&ret->costs, k, t->widths[i], u) =
                    (struct tun_cell){ns, 0, TUN_MEASURED};
            }
        }
    }
    tun_fill(ret);
    return 0;
}

/* Pipe-it's plan by one table, and what it does by another. */
static int plan(const struct tun_problem *by, const struct tun_problem *truth,
                char ret_text[PL_PLAN_TEXT_MAX], double *ret_ns)
{
    char error[TUN_ERROR_MAX] = "";
    struct tun_search *s = NULL;
    struct tun_outcome o;
    struct pl_plan plan;
    int result = tun_search_new("pipe-it", by, NULL, error, &s);

    result = result ? result : tun_search_ask(s, &plan);
    result = result ? result : tun_eval(truth, &plan, &o);
    if (result == 0) {
        tun_plan_text(truth, &plan, ret_text);
        *ret_ns = o.bottleneck_ns;
    }
    tun_search_free(s);
    return result;
}

static int compare_plans(const struct net *n, const struct times *t, size_t cores)
{
    struct tun_problem measured = TUN_PROBLEM_NULL, predicted = TUN_PROBLEM_NULL;
    char text[2][PL_PLAN_TEXT_MAX];
    double ns[2];
    int error = table(n, t, cores, false, &measured);

    error = error ? error : table(n, t, cores, true, &predicted);
    error = error ? error : plan(&measured, &measured, text[0], &ns[0]);
    error = error ? error : plan(&predicted, &measured, text[1], &ns[1]);
    if (!error) {
        printf("%-16s plan by measured times %s: %.2f ms; by predicted %s: %.2f ms, %.1f %% more\n",
               n->model->name, text[0], ns[0] / 1e6, text[1], ns[1] / 1e6,
               100 * (ns[1] / ns[0] - 1));
    }
    tun_problem_deinit(&measured);
    tun_problem_deinit(&predicted);
    return error;
}

static int try_model(const char *path, const struct pl_ep_set *eps, size_t frames,
                     const struct tun_predictor *p, int predictors)
{
    static const char *const by[] = {"chain", "grid"};
    base_autofree double *measured = NULL, *predicted = NULL, *scratch = NULL;
    struct times t = {0};
    struct net n = {0};
    size_t cores = eps->eps[0].cpu_count, units;
    int error = net_load(path, &n);

    if (error) {
        return error;
    }
    units = n.model->unit_count;
    t.measured = measured = calloc(WIDTHS * units, sizeof(*measured));
    t.predicted = predicted = calloc(WIDTHS * units, sizeof(*predicted));
    scratch = calloc(2 * units, sizeof(*scratch));
    error = measured && predicted && scratch ? 0 : -ENOMEM;
    for (size_t w = 1; w <= cores && !error && t.count < WIDTHS; w = next_width(w, cores)) {
        double *ns = measured + t.count * units;

        error = run(&n, eps, w, frames, ns);
        for (int i = 0; i < predictors && !error; i++) {
            compare(by[i], &n, ns, w, &p[i], scratch);
        }
        predict(&n, &p[0], w, predicted + t.count * units);
        t.widths[t.count++] = w;
    }
    if (!error && cores > 1) {
        error = compare_plans(&n, &t, cores);
    }
    net_deinit(&n);
    return error;
}

int main(int argc, char **argv)
{
    static struct pl_ep_set eps = {.count = 1, .eps = {{.name = "cpu", .speed = 1}}};
    struct tun_predictor p[2];
    bool grid = argc > 3 && strcmp(argv[3], "--grid") == 0;
    size_t frames;
    int cores, count;

    if (argc < 4 + grid || (cores = dmn_cpu_list_parse(argv[1], eps.eps[0].cpus, PL_CPU_MAX)) < 1 ||
        (frames = strtoul(argv[2], NULL, 10)) < 1) {
        fputs("usage: predict_bench CPUS FRAMES [--grid] MODEL...\n", stderr);
        return 2;
    }
    eps.eps[0].cpu_count = (size_t)cores;
    count = calibrate(&eps, frames, grid, p);
    if (count < 0) {
        return 1;
    }
    for (int i = 0; i < count; i++) {
        const struct tun_fit *f = p[i].fits;

        printf("fits of the %s, one core and several:", i ? "grid" : "chain");
        for (size_t k = 0; k < TUN_LAYERS; k++) {
            printf(" %s %.1f, %.1f %%", dmn_layer_name((enum tun_layer)k), 100 * f[k].error,
                   100 * f[k].error_wide);
        }
        printf("\n");
    }
    printf("%-16s by    width  units        measured   predicted    mean    median  depthwise      "
           "sum\n",
           "model");
    for (int i = 3 + grid; i < argc; i++) {
        if (try_model(argv[i], &eps, frames, p, count) != 0) {
            return 1;
        }
    }
    return 0;
}
