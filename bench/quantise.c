/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantise - an f32 model and what calibration makes of it, side by side
 *
 *     quantise MODEL FOLDER [--kl] [--symmetric] [--keep OP]... [--write FILE] [--frames N]
 *
 * Calibrates by every second example of FOLDER (*.ppm, *.f32), runs both models on the others, and
 * prints how often their largest outputs agree, how far those lie apart, and the median
 * milliseconds of both on one thread, measured in turns. With one example or none that fits, both
 * run on it or on noise.
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "kernels/calibrate.h"

#define KEEP_MAX 64u
#define FRAMES_MAX 1000u

struct options {
    const char *model, *folder, *write;
    char *keep[KEEP_MAX];
    size_t keep_count, frames;
    bool kl, symmetric;
};

struct side {
    struct mdl_model *m;
    struct krn_net *net;
    struct krn_mem mem;
    struct krn_exec exec;
    void *input, *output;
    const void *inputs[1];
    void *outputs[16];
    double ms[FRAMES_MAX];
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "quantise: %s: %s\n", what, why);
    exit(1);
}

static void parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.frames = 15};
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--kl") == 0) {
            o->kl = true;
        } else if (strcmp(argv[i], "--symmetric") == 0) {
            o->symmetric = true;
        } else if (strcmp(argv[i], "--keep") == 0 && o->keep_count < KEEP_MAX) {
            o->keep[o->keep_count++] = argv[++i];
        } else if (strcmp(argv[i], "--write") == 0) {
            o->write = next;
            i++;
        } else if (strcmp(argv[i], "--frames") == 0) {
            o->frames = base_min(strtoul(next, NULL, 10), (unsigned long)FRAMES_MAX);
            i++;
        } else if (!o->model) {
            o->model = argv[i];
        } else {
            o->folder = argv[i];
        }
    }
    if (!o->model || !o->folder || o->frames == 0) {
        die("usage", "quantise MODEL FOLDER [--kl] [--symmetric] [--keep OP]... [--write FILE] "
                     "[--frames N]");
    }
}

static void *memory(size_t bytes)
{
    void *p = aligned_alloc(64, base_align_up(bytes + 1, 64));

    if (!p) {
        die("memory", "there is none");
    }
    memset(p, 0, bytes);
    return p;
}

static void side_init(struct side *s, const struct options *o, const struct mdl_calibration *c)
{
    struct mdl_load_options lo = {.name = "bench", .const_eval = krn_const_eval, .calibration = c};
    char error[MDL_ERROR_MAX];

    if (mdl_load(o->model, &lo, error, &s->m) != 0 ||
        krn_net_new(s->m, NULL, error, &s->net) != 0) {
        die(o->model, error);
    }
    if (s->m->input_count != 1 || s->m->output_count > base_array_count(s->outputs)) {
        die(o->model, "one input is wanted");
    }
    s->inputs[0] = s->input = memory(s->m->inputs[0].bytes);
    for (size_t i = 0; i < s->m->output_count; i++) {
        s->outputs[i] = memory(s->m->outputs[i].bytes);
    }
    s->mem = (struct krn_mem){memory(s->m->arena_bytes), s->inputs, s->outputs};
    s->exec = (struct krn_exec){.width = 1, .scratch = memory(krn_net_scratch_bytes(s->net, 1))};
}

static void side_run(struct side *s, size_t frame)
{
    uint64_t start = base_now_ns();

    krn_net_run_ops(s->net, 0, s->m->op_count - 1, &s->mem, &s->exec);
    s->ms[frame] = (double)(base_now_ns() - start) / 1e6;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof(*v), by_value);
    return v[n / 2];
}

static size_t top(const struct side *s)
{
    const float *y = s->outputs[0];
    size_t best = 0;

    for (size_t i = 0; i < s->m->outputs[0].bytes / sizeof(*y); i++) {
        best = y[i] > y[best] ? i : best;
    }
    return best;
}

/* largest difference of output 0 as a share of its largest element */
static double distance(const struct side *a, const struct side *b)
{
    const float *x = a->outputs[0], *y = b->outputs[0];
    double worst = 0, most = 1e-30;

    for (size_t i = 0; i < a->m->outputs[0].bytes / sizeof(*x); i++) {
        worst = fmax(worst, fabs((double)x[i] - (double)y[i]));
        most = fmax(most, fabs((double)x[i]));
    }
    return worst / most;
}

static void noise(void *input, size_t bytes)
{
    static uint32_t state = 12345;
    float *x = input;

    for (size_t i = 0; i < bytes / sizeof(*x); i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
}

/* A raw input of the model; false: not one. */
static bool read_example(const char *folder, const char *name, void *to, size_t bytes)
{
    char path[4096];
    size_t n = strlen(name), got;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = n > 4 && strcmp(name + n - 4, ".f32") == 0 ? fopen(path, "rb") : NULL;
    if (!f) {
        return false;
    }
    got = fread(to, 1, bytes, f);
    got += fread(path, 1, 1, f);
    fclose(f);
    return got == bytes;
}

static struct mdl_calibration *calibrate(const struct side *s, const struct options *o)
{
    struct krn_calibrate *c;
    struct mdl_calibration *ranges;
    char error[MDL_ERROR_MAX], note[MDL_ERROR_MAX];
    size_t count = 0, zeros;
    uint64_t start = base_now_ns();

    if (krn_calibrate_new(s->m, o->kl ? KRN_CALIBRATE_KL : KRN_CALIBRATE_MINMAX, error, &c) != 0 ||
        krn_calibrate_folder(c, o->folder, &count, note, error) != 0) {
        die(o->folder, error);
    }
    if (krn_calibrate_finish(c, o->symmetric, &zeros, &ranges) != 0) {
        die("calibration", "failed");
    }
    krn_calibrate_free(c);
    ranges->keep = calloc(o->keep_count + 1, sizeof(char *));
    for (size_t i = 0; i < o->keep_count; i++) {
        ranges->keep[ranges->keep_count++] = strdup(o->keep[i]);
    }
    printf("%zu examples, %zu ranges, %zu of them 0, %.1f s%s%s\n", count, ranges->range_count,
           zeros, (double)(base_now_ns() - start) / 1e9, note[0] ? "; not " : "", note);
    if (o->write && mdl_calibration_write(ranges, o->write) != 0) {
        die(o->write, "cannot be written");
    }
    return ranges;
}

int main(int argc, char **argv)
{
    static struct side real, whole;
    struct mdl_calibration *ranges;
    struct dirent **names = NULL;
    size_t same = 0, tried = 0, integers = 0;
    double worst = 0, sum = 0;
    struct options o;
    int found;

    parse(argc, argv, &o);
    side_init(&real, &o, NULL);
    ranges = calibrate(&real, &o);
    side_init(&whole, &o, ranges);
    for (size_t i = 0; i < whole.m->op_count; i++) {
        integers += whole.m->ops[i].quant != NULL;
    }
    found = scandir(o.folder, &names, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        if (read_example(o.folder, names[i]->d_name, real.input, real.m->inputs[0].bytes)) {
            memcpy(whole.input, real.input, real.m->inputs[0].bytes);
            side_run(&real, 0);
            side_run(&whole, 0);
            same += top(&real) == top(&whole);
            sum += distance(&real, &whole);
            worst = fmax(worst, distance(&real, &whole));
            tried++;
        }
    }
    if (!tried) {
        noise(real.input, real.m->inputs[0].bytes);
        memcpy(whole.input, real.input, real.m->inputs[0].bytes);
    }
    for (size_t i = 0; i < o.frames; i++) {
        side_run(&real, i);
        side_run(&whole, i);
    }
    printf("top-1 equal %zu of %zu, difference %.4f mean, %.4f largest (of the largest output)\n",
           same, tried, tried ? sum / (double)tried : 0, worst);
    printf("ops %zu (f32), %zu (%zu on integers); arena %zu, %zu bytes; packed %zu, %zu bytes\n",
           real.m->op_count, whole.m->op_count, integers, real.m->arena_bytes, whole.m->arena_bytes,
           krn_net_packed_bytes(real.net), krn_net_packed_bytes(whole.net));
    double a = median(real.ms, o.frames), b = median(whole.ms, o.frames);
    printf("f32 %.2f ms, int8 %.2f ms, %.2f times as fast\n", a, b, a / b);
    return 0;
}
