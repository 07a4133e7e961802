/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantise_bench - an f32 model and what calibration makes of it, side by side
 *
 *     quantise_bench MODEL FOLDER [--min-max | --kl] [--symmetric] [--keep OP]... [--bound PERCENT]
 *                    [--widen] [--swap] [--order N] [--apart N] [--ms N] [--write FILE]
 *                    [--front N [--q-learning]]
 *
 * Does what the daemon does for "pipectl quantize": every second example of FOLDER (JPEG, PPM, PGM,
 * raw .f32, in order of name) calibrates, the others judge; with one example, it does both. --widen
 * makes ten examples of every picture (as it is, mirrored, five crops, one of them mirrored, darker
 * and brighter), which go to the same half. --swap: the other half calibrates, but for one example
 * where their number is odd. --order: shuffles the files by this seed. --apart: the last N files
 * take no part, and agreement on them is printed too. --ms: each model is measured for about so
 * long (default 1000; 0: not). --front: also the front of N proposals, as "pipectl optimise
 * --front" makes it; --q-learning proposes them.
 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "apps/picture/picture.h"
#include "base/base.h"
#include "kernels/int8cal/quantise.h"
#include "kernels/int8cal/runner.h"

#define KEEP_MAX 64u
#define VARIANTS 10u

struct options {
    const char *model, *folder, *write;
    const char *keep[KEEP_MAX];
    size_t keep_count;
    double bound, ms;
    size_t order, apart, front;
    bool q_learning, min_max, kl, symmetric, widen, swap;
};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "quantise_bench: %s: %s\n", what, why);
    exit(1);
}

static const char *value(int argc, char **argv, int *i)
{
    if (*i + 1 >= argc) {
        die(argv[*i], "needs a value");
    }
    return argv[++*i];
}

static void parse(int argc, char **argv, struct options *o)
{
    *o = (struct options){.bound = 98, .ms = 1000};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--min-max") == 0) {
            o->min_max = true;
        } else if (strcmp(argv[i], "--kl") == 0) {
            o->kl = true;
        } else if (strcmp(argv[i], "--symmetric") == 0) {
            o->symmetric = true;
        } else if (strcmp(argv[i], "--widen") == 0) {
            o->widen = true;
        } else if (strcmp(argv[i], "--swap") == 0) {
            o->swap = true;
        } else if (strcmp(argv[i], "--keep") == 0 && o->keep_count < KEEP_MAX) {
            o->keep[o->keep_count++] = value(argc, argv, &i);
        } else if (strcmp(argv[i], "--bound") == 0) {
            o->bound = strtod(value(argc, argv, &i), NULL);
        } else if (strcmp(argv[i], "--ms") == 0) {
            o->ms = strtod(value(argc, argv, &i), NULL);
        } else if (strcmp(argv[i], "--order") == 0) {
            o->order = strtoul(value(argc, argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--apart") == 0) {
            o->apart = strtoul(value(argc, argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--front") == 0) {
            o->front = strtoul(value(argc, argv, &i), NULL, 10);
        } else if (strcmp(argv[i], "--q-learning") == 0) {
            o->q_learning = true;
        } else if (strcmp(argv[i], "--write") == 0) {
            o->write = value(argc, argv, &i);
        } else if (!o->model) {
            o->model = argv[i];
        } else {
            o->folder = argv[i];
        }
    }
    if (!o->model || !o->folder) {
        die("usage", "quantise_bench MODEL FOLDER [--min-max | --kl] [--symmetric] [--keep OP]... "
                     "[--bound PERCENT] "
                     "[--widen] [--swap] [--order N] [--apart N] [--ms N] [--write FILE] "
                     "[--front N [--q-learning]]");
    }
}

/* A part of a picture, mirrored and with another brightness. */
struct variant {
    double x, y, side; /* of the whole */
    bool mirrored;
    double light;
};

static const struct variant variants[VARIANTS] = {
    {0, 0, 1, false, 1},
    {0, 0, 1, true, 1},
    {0, 0, 0.875, false, 1},
    {0.125, 0, 0.875, false, 1},
    {0, 0.125, 0.875, false, 1},
    {0.125, 0.125, 0.875, false, 1},
    {0.0625, 0.0625, 0.875, false, 1},
    {0.0625, 0.0625, 0.875, true, 1},
    {0, 0, 1, false, 0.75},
    {0, 0, 1, false, 1.25},
};

static void add_variant(struct krn_examples *e, const char *name, const struct picture *img,
                        const uint8_t *pixels, const struct variant *v)
{
    size_t channels = img->channels, width = (size_t)(v->side * img->width + 0.5);
    size_t height = (size_t)(v->side * img->height + 0.5), at;
    size_t left = base_min((size_t)(v->x * img->width), img->width - width);
    size_t top = base_min((size_t)(v->y * img->height), img->height - height);
    uint8_t *data = malloc(width * height * channels + 64);

    if (!data) {
        die(name, "out of memory");
    }
    at = (size_t)snprintf((char *)data, 64, "P%d\n%zu %zu\n255\n", channels == 3 ? 6 : 5, width,
                          height);
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            size_t from = left + (v->mirrored ? width - 1 - x : x);

            for (size_t c = 0; c < channels; c++) {
                double p = pixels[((top + y) * img->width + from) * channels + c] * v->light;

                data[at++] = (uint8_t)base_min(p + 0.5, 255.0);
            }
        }
    }
    if (krn_examples_add(e, name, data, at, true) < 0) {
        die(name, "too many examples");
    }
}

static void add_file(struct krn_examples *e, const struct options *o, const char *name)
{
    struct picture img = PICTURE_NULL;
    char path[4096], error[PICTURE_ERROR_MAX];
    uint8_t *pixels;

    snprintf(path, sizeof(path), "%s/%s", o->folder, name);
    if (picture_open(path, error, &img) < 0) {
        krn_examples_leave_out(e, name, error);
        return;
    }
    pixels = malloc(img.bytes + 1);
    if (!pixels || picture_decode(&img, pixels, error) < 0) {
        krn_examples_leave_out(e, name, pixels ? error : "out of memory");
        free(pixels);
    } else if (img.kind == PICTURE_RAW) {
        if (krn_examples_add(e, name, pixels, img.bytes, true) < 0) {
            die(name, "too many examples");
        }
    } else {
        for (size_t i = 0; i < (o->widen ? VARIANTS : 1u); i++) {
            add_variant(e, name, &img, pixels, &variants[i]);
        }
        free(pixels);
    }
    picture_close(&img);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

/* Orders the names by @seed, the same on every machine. */
static void shuffle(struct dirent **names, size_t count, size_t seed)
{
    uint64_t state = seed;

    for (size_t i = count; i > 1; i--) {
        struct dirent *name = names[i - 1];
        size_t k;

        state = state * 6364136223846793005u + 1442695040888963407u; /* D. Knuth, MMIX */
        k = (size_t)(state >> 33) % i;
        names[i - 1] = names[k];
        names[k] = name;
    }
}

static void read_examples(struct krn_examples *e, struct krn_examples *apart,
                          const struct options *o)
{
    struct dirent **names = NULL;
    int found = scandir(o->folder, &names, visible, alphasort);
    int used;

    if (found <= 0) {
        die(o->folder, found < 0 ? strerror(errno) : "it is empty");
    }
    if (o->apart >= (size_t)found) {
        die(o->folder, "has too few files for --apart");
    }
    if (o->order) {
        shuffle(names, (size_t)found, o->order);
    }
    used = found - (int)o->apart;
    for (int i = 0; i < found; i++) {
        int at = o->swap && i < used ? (i + 1) % used : i;

        add_file(i < used ? e : apart, o, names[at]->d_name);
    }
    for (int i = 0; i < found; i++) {
        free(names[i]);
    }
    free(names);
}

static void load_runner(const struct options *o, struct mdl_load_options load,
                        const struct mdl_calibration *c, struct mdl_model **m,
                        struct krn_runner *ret)
{
    char error[MDL_ERROR_MAX];

    load.calibration = c;
    if (mdl_load(o->model, &load, error, m) < 0 || krn_runner_init(ret, *m, NULL, error) < 0) {
        die(o->model, error);
    }
}

/* Agreement on examples that neither calibrated nor judged. */
static void print_apart(const struct options *o, const struct mdl_load_options *load,
                        const struct mdl_calibration *c, const struct krn_examples *e)
{
    struct mdl_model *m[2] = {NULL, NULL};
    struct krn_runner run[2] = {KRN_RUNNER_NULL, KRN_RUNNER_NULL};
    char error[MDL_ERROR_MAX];
    size_t same = 0;
    double sum = 0;
    void *input;

    for (size_t i = 0; i < 2; i++) {
        load_runner(o, *load, i ? c : NULL, &m[i], &run[i]);
    }
    input = aligned_alloc(64, base_align_up(m[0]->inputs[0].bytes + 1, 64));
    for (size_t i = 0; input && i < e->count; i++) {
        if (krn_example_input(e, i, m[0], input, error) < 0) {
            die(e->items[i].name, error);
        }
        krn_runner_run(&run[0], input);
        krn_runner_run(&run[1], input);
        same += krn_answer_agrees(m[0], run[0].outputs[0], run[1].outputs[0]);
        sum += krn_answer_error(m[0], run[0].outputs[0], run[1].outputs[0]);
    }
    printf("apart: %zu of %zu agree, %.2f %%, error %.4f mean\n", same, e->count,
           100 * (double)same / (double)e->count, sum / (double)e->count);
    free(input);
    for (size_t i = 0; i < 2; i++) {
        krn_runner_deinit(&run[i]);
        mdl_free(m[i]);
    }
}

static void print(const struct krn_quantised *q, const struct krn_examples *e)
{
    const struct mdl_calibration *c = q->calibration;

    printf("%s: %zu examples calibrated, %zu %s judged, %zu values were always 0, %.1f s\n",
           q->method == KRN_CALIBRATE_KL ? "kl" : "min-max", q->calibrated, q->judged,
           q->held_out ? "others" : "(the same)", q->zeros, (double)q->took_ns / 1e9);
    if (e->left_out) {
        printf("%zu examples left out; %s\n", e->left_out, e->note);
    }
    printf("top-1 agreement %.2f %%, error %.4f mean, %.4f largest (of the largest output)\n",
           100 * q->agreement, q->error_mean, q->error_most);
    if (q->int8_ns > 0) {
        printf("f32 %.3f ms, int8 %.3f ms, %.2f times as fast\n", q->f32_ns / 1e6, q->int8_ns / 1e6,
               q->f32_ns / q->int8_ns);
    }
    printf("%zu of %zu operators on integers, %.1f %% of the multiplications in f32\n", q->integers,
           q->products, 100 * q->f32_work);
    for (size_t i = 0; c && i < c->keep_count; i++) {
        printf("  f32: %s (%s)\n", c->keep[i], krn_kept_why_name(q->why[i]));
    }
}

static void print_front(const struct krn_quantised *q)
{
    printf("       ms  MB weights  MB frame    same  expected   error  integers  inexact\n");
    for (size_t i = 0; i < q->front_count; i++) {
        const struct krn_precision *p = &q->front[i];

        printf("%9.3f  %10.2f  %8.2f  %6.2f  %8.2f  %6.4f  %8zu  %7zu\n", p->ns / 1e6,
               (double)p->packed_bytes / 1e6, (double)p->arena_bytes / 1e6, 100 * p->agreement,
               100 * p->expected, p->error, p->integers, p->inexact_ops);
    }
}

int main(int argc, char **argv)
{
    struct mdl_load_options load = {.name = "bench", .const_eval = krn_const_eval};
    struct krn_quantise_options q = {.cpus = (const int[]){-1}, .cpu_count = 1};
    struct krn_quantised of = KRN_QUANTISED_NULL;
    struct krn_examples e = KRN_EXAMPLES_NULL, apart = KRN_EXAMPLES_NULL;
    char error[MDL_ERROR_MAX] = "";
    struct options o;
    int r;

    parse(argc, argv, &o);
    read_examples(&e, &apart, &o);
    q.either = !o.kl && !o.min_max;
    q.method = o.kl ? KRN_CALIBRATE_KL : KRN_CALIBRATE_MINMAX;
    q.symmetric = o.symmetric;
    q.keep = o.keep;
    q.keep_count = o.keep_count;
    q.agreement_min = o.bound / 100;
    q.group = o.widen ? VARIANTS : 1;
    q.measure_ns = (uint64_t)(o.ms * 1e6);
    q.front_max = o.front;
    q.front_search = o.q_learning ? KRN_PATH_Q_LEARNING : KRN_PATH_DIJKSTRA;
    r = krn_quantise(o.model, &load, &e, &q, error, &of);
    if (r < 0) {
        die(o.model, error);
    }
    print(&of, &e);
    if (o.front) {
        print_front(&of);
    }
    if (r == KRN_QUANTISE_E_USELESS) {
        printf("f32 serves better: %s\n", error);
    } else if (o.write) {
        json_t *ranges = mdl_calibration_json(of.calibration);

        if (json_dump_file(ranges, o.write, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) != 0) {
            die(o.write, "cannot be written");
        }
        json_decref(ranges);
    }
    if (r == 0 && apart.count > 0) {
        print_apart(&o, &load, of.calibration, &apart);
    }
    krn_quantised_deinit(&of);
    krn_examples_deinit(&e);
    krn_examples_deinit(&apart);
    return 0;
}
