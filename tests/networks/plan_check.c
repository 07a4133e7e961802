/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_check [--few] MODEL INPUT [OUTPUT] - are the answers right under every shape of plan
 *
 * INPUT and OUTPUT hold all inputs and all outputs, one after the other, as they are in memory.
 * Without OUTPUT the answer is what the first frame gives, in one stage.
 *
 * The plans are: one stage, one stage a core, many stages, a stage of full width, several teams a
 * stage, teams of mixed kinds and widths. Each serves a few frames; every number of an output must
 * be within 1e-4 of the stored one, relative to the largest that is stored of that output, and
 * integers must be equal. Between plans the pipeline is switched while it serves, so switching is
 * tried as well. --few: one stage, many stages and teams of mixed widths, a frame for each team.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "pipeline/pipeline.h"

#define FRAMES_PER_PLAN 4
#define FRAMES_OF_FEW 2 /* the most teams that a stage of these plans has */
#define TOLERANCE 1e-4
#define PLANS_MAX 16

struct check {
    struct mdl_model *model;
    struct krn_net *net;
    struct pl_pipeline *pipeline;
    struct pl_ep_set eps;
    pthread_mutex_t lock;
    pthread_cond_t ready;
    bool notified;
    const uint8_t *input;
    uint8_t *expected; /* NULL until the first frame was answered, if it gives the answer */
    bool few;
};

static void notify(void *arg)
{
    struct check *c = arg;

    pthread_mutex_lock(&c->lock);
    c->notified = true;
    pthread_cond_signal(&c->ready);
    pthread_mutex_unlock(&c->lock);
}

static void await(struct check *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->notified) {
        pthread_cond_wait(&c->ready, &c->lock);
    }
    c->notified = false;
    pthread_mutex_unlock(&c->lock);
}

static uint8_t *read_file(const char *path, size_t *ret_bytes)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;

    if (f && fseek(f, 0, SEEK_END) == 0) {
        long bytes = ftell(f);
        data = bytes > 0 ? malloc((size_t)bytes) : NULL;
        rewind(f);
        if (!data || fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
            fprintf(stderr, "%s: cannot read\n", path);
            exit(1);
        }
        *ret_bytes = (size_t)bytes;
    } else {
        fprintf(stderr, "%s: cannot open\n", path);
        exit(1);
    }
    fclose(f);
    return data;
}

/* EPs over the cores this process may use: the first core is "big", the second "little", all of
 * them "all". */
static void make_eps(struct pl_ep_set *eps)
{
    cpu_set_t set;
    struct pl_ep *all = &eps->eps[2];

    memset(eps, 0, sizeof(*eps));
    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE && all->cpu_count < 2; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            all->cpus[all->cpu_count++] = (uint16_t)cpu;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"big", "little", "all"};
        snprintf(eps->eps[i].name, sizeof(eps->eps[i].name), "%s", names[i]);
        eps->eps[i].speed = 1;
    }
    eps->eps[0].cpu_count = eps->eps[1].cpu_count = 1;
    eps->eps[0].cpus[0] = all->cpus[0];
    eps->eps[1].cpus[0] = all->cpus[all->cpu_count - 1];
    eps->count = 3;
}

typedef char plan_text[PL_PLAN_TEXT_MAX];

static void many_stages(size_t units, plan_text ret)
{
    size_t stages = base_min(units, (size_t)7), used = 0;

    for (size_t s = 0; s < stages; s++) {
        size_t first = units * s / stages, end = units * (s + 1) / stages - 1;
        used += (size_t)snprintf(ret + used, PL_PLAN_TEXT_MAX - used, "%s%zu-%zu@%s", s ? "|" : "",
                                 first, end, s % 2 ? "little" : "big");
    }
}

/* @wide: there are two cores. */
static size_t make_plans(size_t units, bool wide, bool few, plan_text plans[PLANS_MAX])
{
    size_t last = units - 1, half = units / 2, count = 0;

#define PLAN(...) snprintf(plans[count++], PL_PLAN_TEXT_MAX, __VA_ARGS__)
    PLAN("0-%zu@big", last);
    if (!few) {
        PLAN("0-%zu@big+little", last);
        PLAN("0-%zu@big*2+little", last);
    }
    if (wide && !few) {
        PLAN("0-%zu@allx2", last);
        PLAN("0-%zu@allx2*2+big", last);
    }
    if (units > 1 && !few) {
        PLAN("0-%zu@big|%zu-%zu@little", half - 1, half, last);
        PLAN("0-0@little*2|1-%zu@big+little", last);
    }
    if (units > 1 && wide) {
        PLAN("0-%zu@big+little|%zu-%zu@allx2", half - 1, half, last);
    }
#undef PLAN
    many_stages(units, plans[count++]);
    return count;
}

/* Largest difference of an output, relative to the largest stored value; integers must be equal. */
static double output_difference(enum mdl_dtype dtype, const uint8_t *y, const uint8_t *e,
                                size_t bytes)
{
    double worst = 0, largest = 0;

    if (dtype != MDL_F32) {
        return memcmp(y, e, bytes) == 0 ? 0 : 1e30;
    }
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
        float ours, theirs;

        memcpy(&ours, y + i, sizeof(ours));
        memcpy(&theirs, e + i, sizeof(theirs));
        double d = __builtin_fabs((double)ours - (double)theirs);
        worst = d >= 0 ? base_max(worst, d) : 1e30;
        largest = base_max(largest, __builtin_fabs((double)theirs));
    }
    return worst > 0 ? worst / largest : 0;
}

static size_t output_bytes(const struct check *c)
{
    size_t bytes = 0;

    for (size_t o = 0; o < c->model->output_count; o++) {
        bytes += c->model->outputs[o].bytes;
    }
    return bytes;
}

/* The frame's outputs are the answer from now on. */
static void keep(struct check *c, const struct pl_frame *f)
{
    size_t at = 0;

    c->expected = malloc(base_max(output_bytes(c), (size_t)1));
    if (!c->expected) {
        abort();
    }
    for (size_t o = 0; o < c->model->output_count; o++) {
        memcpy(c->expected + at, f->outputs[o], c->model->outputs[o].bytes);
        at += c->model->outputs[o].bytes;
    }
}

/* The largest of all outputs of a collected frame. */
static double difference(struct check *c, const struct pl_frame *f)
{
    const uint8_t *expected = c->expected;
    double worst = 0;

    if (!expected) {
        keep(c, f);
        return 0;
    }
    for (size_t o = 0; o < c->model->output_count; o++) {
        const struct mdl_io *io = &c->model->outputs[o];

        worst = base_max(worst, output_difference(c->model->tensors[io->tensor].dtype,
                                                  f->outputs[o], expected, io->bytes));
        expected += io->bytes;
    }
    return worst;
}

static struct pl_frame *submit(struct check *c)
{
    struct pl_frame *f = pl_frame_get(c->pipeline);

    if (!f) {
        return NULL;
    }
    for (size_t o = 0; o < c->model->output_count; o++) {
        f->outputs[o] = calloc(1, base_max(c->model->outputs[o].bytes, (size_t)1));
    }
    for (size_t i = 0, at = 0; i < c->model->input_count; i++) {
        f->inputs[i] = c->input + at;
        at += c->model->inputs[i].bytes;
    }
    return f;
}

/* Serves @count frames under whatever plan is in force. Return: the worst difference seen. */
static double serve(struct check *c, size_t count)
{
    double worst = 0;
    size_t submitted = 0, collected = 0;
    struct pl_frame *waiting = NULL;

    while (collected < count) {
        struct pl_frame *f;

        while (submitted < count && (waiting || (waiting = submit(c)))) {
            if (pl_submit(c->pipeline, waiting) != 0) {
                break;
            }
            waiting = NULL;
            submitted++;
        }
        while ((f = pl_collect(c->pipeline))) {
            worst = base_max(worst, f->status == PL_FRAME_OK ? difference(c, f) : 1e30);
            for (size_t o = 0; o < c->model->output_count; o++) {
                free(f->outputs[o]);
            }
            pl_frame_put(c->pipeline, f);
            collected++;
        }
        pl_reap(c->pipeline);
        if (collected < count) {
            await(c);
        }
    }
    return worst;
}

static int switch_plan(struct check *c, const struct pl_plan *plan)
{
    int r;

    while ((r = pl_switch(c->pipeline, plan)) == PL_E_BUSY) {
        pl_reap(c->pipeline);
        if (pl_switching(c->pipeline)) {
            await(c);
        }
    }
    return r;
}

static int check_plans(struct check *c, const char *name)
{
    static plan_text plans[PLANS_MAX];
    size_t count = make_plans(c->model->unit_count, c->eps.eps[2].cpu_count > 1, c->few, plans);
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        struct pl_plan plan;
        char error[256];
        double worst;

        if (pl_plan_parse(plans[i], &c->eps, c->model->unit_count, error, sizeof(error), &plan)) {
            printf("FAIL %s %s: %s\n", name, plans[i], error);
            failed++;
            continue;
        }
        if (!c->pipeline) {
            struct pl_options options = {.notify = notify, .notify_arg = c};
            if (pl_new(c->net, &c->eps, &plan, &options, &c->pipeline) != 0) {
                printf("FAIL %s %s: no pipeline\n", name, plans[i]);
                return 1;
            }
        } else if (switch_plan(c, &plan) != 0) {
            printf("FAIL %s %s: no switch\n", name, plans[i]);
            failed++;
            continue;
        }
        worst = serve(c, c->few ? FRAMES_OF_FEW : FRAMES_PER_PLAN);
        printf("%s %s %s: worst difference %.2e\n", worst <= TOLERANCE ? "ok" : "FAIL", name,
               plans[i], worst);
        failed += worst <= TOLERANCE ? 0 : 1;
    }
    printf("cases: %zu passed, %d failed, 0 skipped\n", count - (size_t)failed, failed);
    return failed;
}

static bool load(struct check *c, char **argv)
{
    struct mdl_load_options options = {.name = "network", .const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];
    size_t input_bytes, stored_bytes = 0, in = 0;

    if (mdl_load(argv[0], &options, error, &c->model) != 0 ||
        krn_net_new(c->model, NULL, error, &c->net) != 0) {
        fprintf(stderr, "%s: %s\n", argv[0], error);
        return false;
    }
    c->input = read_file(argv[1], &input_bytes);
    if (argv[2]) {
        c->expected = read_file(argv[2], &stored_bytes);
    }
    for (size_t i = 0; i < c->model->input_count; i++) {
        in += c->model->inputs[i].bytes;
    }
    if (in != input_bytes || (c->expected && output_bytes(c) != stored_bytes)) {
        fprintf(stderr, "%s: inputs or outputs have another size than the stored ones\n", argv[0]);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct check c = {.lock = PTHREAD_MUTEX_INITIALIZER, .ready = PTHREAD_COND_INITIALIZER};
    int failed;

    c.few = argc > 1 && strcmp(argv[1], "--few") == 0;
    argv += 1 + c.few;
    if (argc - c.few != 3 && argc - c.few != 4) {
        fprintf(stderr, "usage: plan_check [--few] MODEL INPUT [OUTPUT]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!load(&c, argv)) {
        return 1;
    }
    make_eps(&c.eps);
    failed = check_plans(&c, argv[0]);
    pl_free(c.pipeline);
    krn_net_free(c.net);
    mdl_free(c.model);
    free((void *)(uintptr_t)c.input);
    free(c.expected);
    return failed ? 1 : 0;
}
