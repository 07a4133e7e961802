/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict_bench - how well micro-benchmarks foretell the units of real networks
 * (Pipe-it, table III)
 *
 *     predict_bench CPUS FRAMES MODEL...
 *     predict_bench 0-1 20 model/networks/squeezenet1_1.json
 *
 * Runs the chain of the calibration on teams of 1, 2, 4, ... of these cores, fits the predictor,
 * runs each model at the same widths and prints the mean and median relative error over its units
 * and of their sum. Of every unit the quickest frame counts, in both.
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

static int calibrate(const struct pl_ep_set *eps, size_t frames, struct tun_predictor *ret)
{
    struct net n = {0};
    char *path;
    struct tun_bench *benches;
    double *ns;
    size_t count = 0, cores = eps->eps[0].cpu_count;

    if (dmn_profile_write_net("/tmp", &path) < 0 || net_load(path, &n) < 0) {
        return -EINVAL;
    }
    unlink(path);
    free(path);
    ns = calloc(n.model->unit_count, sizeof(*ns));
    benches = calloc(n.model->unit_count * 16, sizeof(*benches));
    for (size_t w = 1; w <= cores && ns && benches; w = next_width(w, cores)) {
        if (run(&n, eps, w, frames, ns) < 0) {
            break;
        }
        for (size_t u = 0; u < n.model->unit_count; u++) {
            struct tun_bench *b = &benches[count];

            count += dmn_unit_gemm(n.model, u, &b->n, &b->k, &b->m);
            b->width = (uint16_t)w;
            b->ns = ns[u];
        }
    }
    net_deinit(&n);
    free(ns);
    count = (size_t)tun_predictor_fit(benches, count, ret);
    free(benches);
    return (int)count;
}

static int rising(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void compare(const char *name, const struct net *n, const double *ns, size_t width,
                    const struct tun_predictor *p, double *scratch)
{
    double sum = 0, predicted_ns = 0, measured_ns = 0;
    size_t covered = 0;

    for (size_t u = 0; u < n->model->unit_count; u++) {
        double gn, gk, gm, guess;

        if (!dmn_unit_gemm(n->model, u, &gn, &gk, &gm)) {
            continue;
        }
        guess = tun_predict_ns(p, gn, gk, gm, width);
        scratch[covered] = guess > ns[u] ? guess / ns[u] - 1 : 1 - guess / ns[u];
        sum += scratch[covered++];
        predicted_ns += guess;
        measured_ns += ns[u];
    }
    qsort(scratch, covered, sizeof(*scratch), rising);
    printf("%-16s %5zu  %3zu of %3zu  %9.2f  %9.2f  %6.1f %%  %6.1f %%  %6.1f %%\n", name, width,
           covered, n->model->unit_count, measured_ns / 1e6, predicted_ns / 1e6,
           100 * sum / (double)base_max(covered, (size_t)1),
           covered ? 100 * scratch[covered / 2] : 0, 100 * (predicted_ns / measured_ns - 1));
}

int main(int argc, char **argv)
{
    static struct pl_ep_set eps = {.count = 1, .eps = {{.name = "cpu", .speed = 1}}};
    struct tun_predictor p;
    size_t frames;
    int cores;

    if (argc < 4 || (cores = dmn_cpu_list_parse(argv[1], eps.eps[0].cpus, PL_CPU_MAX)) < 1 ||
        (frames = strtoul(argv[2], NULL, 10)) < 1) {
        fputs("usage: predict_bench CPUS FRAMES MODEL...\n", stderr);
        return 2;
    }
    eps.eps[0].cpu_count = (size_t)cores;
    if (calibrate(&eps, frames, &p) != 0) {
        return 1;
    }
    printf("fits: convolutions %.1f %%, fully connected %.1f %%, teams %.1f %%\n",
           100 * p.error_conv, 100 * p.error_fc, 100 * p.error_multi);
    printf("%-16s width  units        measured   predicted    mean    median      sum\n", "model");
    for (int i = 3; i < argc; i++) {
        struct net n = {0};
        base_autofree double *ns = NULL, *scratch = NULL;

        if (net_load(argv[i], &n) < 0) {
            return 1;
        }
        ns = calloc(n.model->unit_count, sizeof(*ns));
        scratch = calloc(n.model->unit_count, sizeof(*scratch));
        for (size_t w = 1; w <= eps.eps[0].cpu_count; w = next_width(w, eps.eps[0].cpu_count)) {
            if (!ns || !scratch || run(&n, &eps, w, frames, ns) < 0) {
                return 1;
            }
            compare(n.model->name, &n, ns, w, &p, scratch);
        }
        net_deinit(&n);
    }
    return 0;
}
