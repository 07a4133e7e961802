/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_bench - one network on the calling process alone: no daemon, no pipeline
 *
 *     net_bench MODEL.onnx [--frames N] [--warmup N] [--width W] [--cpu C] [--only NAMES] [--ops]
 *               [--measure MS] [--image FORMAT[:WxH]] [--serve]
 *
 * Runs the net on W threads (1: the main thread, pinned to cpu C when given) and prints one JSON
 * object with the milliseconds of every frame; --ops adds the median time of each operator and the
 * primitive that ran it. --serve lets a script interleave it with other programs: for every line on
 * stdin it runs one frame and prints its milliseconds, or, when the line is a number of seconds,
 * as many frames as go into it, and prints {"frames": [[start_ns, end_ns], ...]}. --measure:
 * primitives are chosen by measuring them for so long, as the daemon does, not by the order of the
 * table. --image: input 0 comes as an image (rgb24, bgr24, gray8, nv12 or yuyv, by default of the
 * model's own size); its conversion belongs to the frame, and to the first operator.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/pixfmt.h"
#include "bench/median.h"
#include "kernels/kernels.h"
#include "kernels/lib/blas.h"
#include "kernels/select/choose.h"

/* a slice is printed when it has ended: writing to a full pipe would wait within it */
#define SLICE_TEXT_BYTES (1u << 22)

struct options {
    const char *model, *only, *image;
    size_t frames, warmup, width, measure_ms;
    int cpu;
    bool ops, serve;
};

struct bench {
    struct mdl_model *m;
    struct krn_net *net;
    struct krn_mem mem;
    struct krn_exec exec;
    void **inputs, **outputs;
    struct krn_image image;
    double *op_ms; /* [op][frame] */
};

static int usage(void)
{
    fputs("usage: net_bench MODEL [--frames N] [--warmup N] [--width W] [--cpu C] [--only NAMES] "
          "[--ops] [--measure MS] [--image FORMAT[:WxH]] [--serve]\n",
          stderr);
    return 2;
}

static bool parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.frames = 30, .warmup = 3, .width = 1, .cpu = -1};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        size_t *number = strcmp(argv[i], "--frames") == 0    ? &o->frames
                         : strcmp(argv[i], "--warmup") == 0  ? &o->warmup
                         : strcmp(argv[i], "--width") == 0   ? &o->width
                         : strcmp(argv[i], "--measure") == 0 ? &o->measure_ms
                                                             : NULL;

        if (strcmp(argv[i], "--ops") == 0) {
            o->ops = true;
        } else if (strcmp(argv[i], "--serve") == 0) {
            o->serve = true;
        } else if (argv[i][0] != '-' && !o->model) {
            o->model = argv[i];
        } else if (!next) {
            return false;
        } else if (number) {
            *number = strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--cpu") == 0) {
            o->cpu = (int)strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = argv[++i];
        } else if (strcmp(argv[i], "--image") == 0) {
            o->image = argv[++i];
        } else {
            return false;
        }
    }
    return o->model && o->frames > 0 && o->frames <= 100000 && o->width > 0 && o->width <= 64;
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, base_align_up(bytes + 1, 64));

    if (!p) {
        perror("net_bench");
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

/* values that look like a normalised image, from the model's .input.f32 file if it stands beside */
static void fill_input(const struct options *o, float *x, size_t bytes)
{
    char path[4096];
    uint32_t state = 12345;
    FILE *f;

    snprintf(path, sizeof(path), "%.*s.input.f32", (int)(strlen(o->model) - strlen(".onnx")),
             o->model);
    f = fopen(path, "rb");
    if (!f || fread(x, 1, bytes, f) != bytes) {
        for (size_t i = 0; i < bytes / sizeof(float); i++) {
            state = state * 1664525u + 1013904223u;
            x[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
        }
    }
    if (f) {
        fclose(f);
    }
}

/* An image of noise in place of input 0, whose values lie in the arena from then on. */
static bool make_image(const struct options *o, struct bench *b)
{
    const struct mdl_tensor *t = &b->m->tensors[b->m->inputs[0].tensor];
    size_t name = strcspn(o->image, ":"), bytes;
    enum pixfmt format;
    unsigned width, height;
    uint32_t state = 12345;
    uint8_t *data;

    if (!pixfmt_find(o->image, name, &format) || format == PIXFMT_TENSOR || t->rank != 4) {
        return false;
    }
    height = (unsigned)t->dim[b->m->preproc.nhwc ? 1 : 2];
    width = (unsigned)t->dim[b->m->preproc.nhwc ? 2 : 3];
    if (o->image[name] && sscanf(o->image + name, ":%ux%u", &width, &height) != 2) {
        return false;
    }
    b->image = (struct krn_image){.format = krn_pixfmt(format),
                                  .width = width,
                                  .height = height,
                                  .stride = pixfmt_row_bytes(format, width)};
    bytes = krn_image_bytes(&b->image);
    if (bytes == 0) {
        return false;
    }
    b->image.data = data = memory(bytes);
    for (size_t i = 0; i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (uint8_t)(state >> 24);
    }
    b->inputs[0] = b->mem.arena + b->m->storages[t->storage].offset;
    b->mem.image = &b->image;
    return true;
}

static int new_net(const struct options *o, struct bench *b, char error[MDL_ERROR_MAX])
{
    struct krn_measure_options mo = {
        .cpu = o->cpu, .budget_ns = o->measure_ms * BASE_NS_PER_MS, .only = o->only};
    struct krn_choose_options co = {0};
    struct krn_times times = KRN_TIMES_NULL;
    struct krn_chosen chosen = KRN_CHOSEN_NULL;
    int r;

    if (o->measure_ms == 0) {
        return krn_net_new(b->m, o->only, error, &b->net);
    }
    snprintf(error, MDL_ERROR_MAX, "its primitives could not be measured");
    r = krn_measure(b->m, &mo, &times);
    r = r < 0 ? r : krn_choose(&times, &co, &chosen);
    r = r < 0 ? r : krn_net_new_chosen(b->m, &chosen.choice, 1, KRN_PACK_ONE_STAGE, error, &b->net);
    krn_chosen_deinit(&chosen);
    krn_times_deinit(&times);
    return r;
}

static int load(const struct options *o, struct bench *b)
{
    struct mdl_load_options lo = {.name = "bench", .const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];

    if (mdl_load(o->model, &lo, error, &b->m) != 0 || new_net(o, b, error) != 0) {
        fprintf(stderr, "net_bench: %s: %s\n", o->model, error);
        return 1;
    }
    b->inputs = memory(b->m->input_count * sizeof(void *));
    b->outputs = memory(b->m->output_count * sizeof(void *));
    for (size_t i = 0; i < b->m->input_count; i++) {
        b->inputs[i] = memory(b->m->inputs[i].bytes);
        fill_input(o, b->inputs[i], b->m->inputs[i].bytes);
    }
    for (size_t i = 0; i < b->m->output_count; i++) {
        b->outputs[i] = memory(b->m->outputs[i].bytes);
    }
    b->mem = (struct krn_mem){.arena = memory(b->m->arena_bytes),
                              .inputs = (const void *const *)b->inputs,
                              .outputs = b->outputs};
    b->exec = (struct krn_exec){.pool = o->width > 1 ? pthreadpool_create(o->width) : NULL,
                                .width = o->width,
                                .scratch = memory(krn_net_scratch_bytes(b->net, o->width))};
    b->op_ms = memory(b->m->op_count * o->frames * sizeof(double));
    if (o->image && !make_image(o, b)) {
        fprintf(stderr, "net_bench: no image '%s' for this model\n", o->image);
        return 1;
    }
    return 0;
}

static double run_frame(const struct options *o, struct bench *b, size_t frame)
{
    uint64_t start = base_now_ns(), now;

    if (!o->ops) {
        krn_net_run_ops(b->net, 0, b->m->op_count - 1, &b->mem, &b->exec);
        return (double)(base_now_ns() - start) / 1e6;
    }
    now = start;
    for (size_t i = 0; i < b->m->op_count; i++) {
        /* an image may be handed to the op behind the one that it takes the place of */
        size_t last = krn_net_chosen_fused(b->net, 0, i) || (b->mem.image && i == 0) ? i + 1 : i;
        uint64_t before = now;

        krn_net_run_ops(b->net, i, last, &b->mem, &b->exec);
        now = base_now_ns();
        b->op_ms[i * o->frames + frame] = (double)(now - before) / 1e6;
        i = last;
    }
    return (double)(now - start) / 1e6;
}

static void print_ops(const struct options *o, struct bench *b)
{
    printf(", \"ops\": [");
    for (size_t i = 0; i < b->m->op_count; i++) {
        const struct mdl_op *op = &b->m->ops[i];
        const struct krn_primitive *fused = krn_net_chosen_fused(b->net, 0, i);
        const char *row = fused ? fused->name
                          : i && krn_net_chosen_fused(b->net, 0, i - 1)
                              ? "with the op before"
                              : krn_net_chosen(b->net, 0, i)->name;
        double ms = median(b->op_ms + i * o->frames, o->frames);

        printf(
            "%s\n  {\"op\": %zu, \"kind\": \"%s\", \"variant\": \"%s\", \"ms\": %.4f, \"gflops\": "
            "%.1f}",
            i ? "," : "", i, mdl_op_kind_name(op->kind), row, ms,
            ms > 0 ? 2 * op->macs / ms / 1e6 : 0);
    }
    printf("]");
}

static void run_slice(const struct options *o, struct bench *b, double seconds)
{
    uint64_t start = base_now_ns(), end = start + (uint64_t)(seconds * 1e9);
    const char *comma = "";

    printf("{\"frames\": [");
    while (start < end) {
        uint64_t done;

        run_frame(o, b, 0);
        done = base_now_ns();
        printf("%s[%" PRIu64 ", %" PRIu64 "]", comma, start, done);
        comma = ", ";
        start = done;
    }
    puts("]}");
}

static void serve(const struct options *o, struct bench *b)
{
    char line[64];

    setvbuf(stdout, NULL, _IOFBF, SLICE_TEXT_BYTES);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        double seconds = strtod(line, NULL);

        if (seconds > 0) {
            run_slice(o, b, seconds);
        } else {
            printf("%.4f\n", run_frame(o, b, 0));
        }
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    struct krn_blas_status blas;
    char text[KRN_CPU_TEXT_MAX];
    struct options o;
    struct bench b = {0};
    struct rusage usage_now;
    double *ms;
    uint64_t start;
    cpu_set_t set;

    if (!parse(argc, argv, &o)) {
        return usage();
    }
    CPU_ZERO(&set);
    if (o.cpu >= 0) {
        CPU_SET((size_t)o.cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) != 0) {
            perror("net_bench: sched_setaffinity");
            return 1;
        }
    }
    if (krn_cpu_check(text) < 0) {
        fprintf(stderr, "net_bench: %s\n", text);
        return 2;
    }
    krn_blas_check(&blas);
    start = base_now_ns();
    if (load(&o, &b) != 0) {
        return 1;
    }
    start = base_now_ns() - start;
    for (size_t i = 0; i < o.warmup; i++) {
        run_frame(&o, &b, 0);
    }
    if (o.serve) {
        serve(&o, &b);
        return 0;
    }
    ms = memory(o.frames * sizeof(double));
    for (size_t i = 0; i < o.frames; i++) {
        ms[i] = run_frame(&o, &b, i);
    }
    getrusage(RUSAGE_SELF, &usage_now);
    printf("{\"model\": \"%s\", \"width\": %zu, \"blas_core\": \"%s\", \"blas_wanted\": \"%s\", "
           "\"load_ms\": %.1f, \"macs\": %.0f, \"arena_bytes\": %zu, \"packed_bytes\": %zu, "
           "\"max_rss_kb\": %ld, \"frames_ms\": [",
           o.model, o.width, blas.core, blas.wanted, (double)start / 1e6, b.m->macs,
           b.m->arena_bytes, krn_net_packed_bytes(b.net), usage_now.ru_maxrss);
    for (size_t i = 0; i < o.frames; i++) {
        printf("%s%.4f", i ? ", " : "", ms[i]);
    }
    printf("], \"median_ms\": %.4f", median(ms, o.frames));
    if (o.ops) {
        print_ops(&o, &b);
    }
    puts("}");
    return 0;
}
