/* SPDX-License-Identifier: Apache-2.0 */
/*
 * primitives_bench - times every primitive on the layers of tests/kernels/real_layers.h
 *
 *     primitives_bench [--runs N] [--width W] [--only NAME] [--layer NAME] [--type f32|i8|i7]
 *                      [--frames N]
 *
 * Convolutions, products, pools and sums are timed on floats and all but sums, as "LAYER i8", on
 * bytes (u8 by i8, weights about normally distributed). With i7 weights have 7 bits, which some
 * primitives need. With frames, only products of one row are timed, N frames at once, by the
 * primitives that can. One JSON object per line and (layer, primitive): median and 10th / 90th
 * percentile microseconds of N runs, GFLOP/s. The primitives of a layer take turns, so that a busy
 * moment hits them alike. Times are of the thread's CPU clock where the width is 1: another program
 * on the core does not count. Packed weights lie in huge pages, as those of a served model.
 */
#include <stdio.h>
#include <string.h>

#include "bench/median.h"
#include "kernels/common/pages.h"
#include "kernels/lib/blas.h"
#include "tests/kernels/one_op.h"
#include "tests/kernels/real_layers.h"

#define RUNS_MAX 1000u
#define FRAMES_MAX 64u
#define PRIMITIVES_MAX 64u

struct options {
    size_t runs, width, frames;
    const char *only, *layer, *type;
};

struct lane {
    const struct krn_primitive *v;
    struct krn_pages packed;
    struct one_op_buffer scratch, out[MDL_OP_OUT_MAX];
    struct krn_prepared prepared;
    double us[RUNS_MAX];
};

static uint64_t clock_ns(size_t width)
{
    struct timespec t;

    clock_gettime(width == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void report(const char *layer, struct lane *l, const struct options *o, double flops)
{
    double median;

    qsort(l->us, o->runs, sizeof(double), by_value);
    median = l->us[o->runs / 2];
    printf("{\"layer\": \"%s\", \"variant\": \"%s\", \"width\": %zu, \"median_us\": %.2f, "
           "\"p10_us\": %.2f, \"p90_us\": %.2f, \"gflops\": %.1f}\n",
           layer, l->v->name, o->width, median, l->us[o->runs / 10], l->us[o->runs * 9 / 10],
           flops / median / 1e3);
    fflush(stdout);
}

/* Return: whether the lane's primitive can run */
static bool lane_prepare(struct lane *l, struct one_op *op, size_t width)
{
    const struct krn_primitive *v = l->v;

    l->prepared = (struct krn_prepared){0};
    if (!v->prepare || (v->prepare(&op->m, &op->op, l->packed.at, 1, &l->prepared) == 0 &&
                        v->prepare(&op->m, &op->op, l->packed.at, width, &l->prepared) == 0)) {
        return true;
    }
    fprintf(stderr, "%s: %s cannot be prepared\n", op->name, v->name);
    v->release(&l->prepared);
    return false;
}

/* sums of four numbers below 64, about 0 */
static int8_t weight(size_t e)
{
    uint32_t r = (uint32_t)e * 2654435761u;

    r ^= r >> 15;
    r *= 2246822519u;
    return (int8_t)((int)((r >> 2 & 63) + (r >> 10 & 63) + (r >> 18 & 63) + (r >> 26)) - 126);
}

static void fill(struct one_op *op, const struct options *o)
{
    bool narrow = o->type && strcmp(o->type, "i7") == 0;

    for (size_t i = 0; i < op->m.tensor_count; i++) {
        uint8_t *p = op->buffers[i].data;

        for (size_t e = 0; e < op->buffers[i].bytes && op->tensors[i].dtype != MDL_F32; e++) {
            p[e] = op->tensors[i].dtype == MDL_U8 ? (uint8_t)(e * 37 + e / 251)
                                                  : (uint8_t)(weight(e) / (narrow ? 2 : 1));
        }
        for (size_t e = 0;
             e < op->buffers[i].bytes / sizeof(float) && op->tensors[i].dtype == MDL_F32; e++) {
            float x = (float)(e % 17) / 17.0f - 0.4f;

            memcpy(p + e * sizeof(x), &x, sizeof(x));
        }
    }
}

static bool wants_primitive(const struct krn_primitive *v, const struct one_op *op,
                            const struct options *o)
{
    return !v->reference && !v->fused && v->kind == op->op.kind &&
           !(v->needs & ~krn_cpu_features()) && (!o->only || strstr(v->name, o->only)) &&
           v->supports(&op->m, &op->op) &&
           (o->frames == 1 || (v->frames_at_once && v->frames_at_once(&op->m, &op->op)));
}

static void pack(struct lane *l, const struct one_op *op)
{
    const struct krn_primitive *v = l->v;

    l->packed = (struct krn_pages){0};
    if (krn_pages_new(v->packed_bytes ? v->packed_bytes(&op->m, &op->op) : 0, 0, &l->packed) < 0) {
        one_op_die("packed weights");
    }
    if (v->pack) {
        v->pack(&op->m, &op->op, l->packed.at);
    }
}

static size_t scratch_bytes(const struct krn_primitive *v, const struct one_op *op,
                            const struct options *o)
{
    if (o->frames > 1 && v->frames_scratch_bytes) {
        return v->frames_scratch_bytes(&op->m, &op->op, o->width, o->frames);
    }
    return v->scratch_bytes ? v->scratch_bytes(&op->m, &op->op, o->width) : 0;
}

static void time_op(struct one_op *op, const struct options *o, pthreadpool_t pool, double flops)
{
    static struct lane lanes[PRIMITIVES_MAX];
    size_t count, used = 0;
    const struct krn_primitive *v = krn_primitives(&count);

    if (o->frames > 1) {
        struct one_op_buffer *x = &op->buffers[op->op.in[0]];
        size_t bytes = o->frames * x->bytes;

        one_op_buffer_free(x);
        *x = one_op_buffer_new(bytes, 64);
    }
    fill(op, o);
    for (size_t i = 0; i < count && used < PRIMITIVES_MAX; i++) {
        struct lane *l = &lanes[used];

        if (!wants_primitive(&v[i], op, o)) {
            continue;
        }
        l->v = &v[i];
        pack(l, op);
        l->scratch = one_op_buffer_new(scratch_bytes(&v[i], op, o), 64);
        l->out[0] = one_op_buffer_new(o->frames * op->buffers[op->op.out[0]].bytes, 64);
        used += lane_prepare(l, op, o->width);
    }
    for (size_t r = 0; r < o->runs + 1; r++) {
        for (size_t i = 0; i < used; i++) {
            struct krn_call c = one_op_call(op, lanes[i].out, pool, o->width, lanes[i].packed.at,
                                            lanes[i].scratch.data);
            uint64_t start;

            c.prepared = lanes[i].prepared.object;
            c.frames = o->frames;

            /* the cold run after the other primitives is not the one that counts */
            lanes[i].v->run(&c);
            start = clock_ns(o->width);
            lanes[i].v->run(&c);
            lanes[i].us[r ? r - 1 : 0] = (double)(clock_ns(o->width) - start) / 1e3;
        }
    }
    for (size_t i = 0; i < used; i++) {
        report(op->name, &lanes[i], o, (double)o->frames * flops);
        if (lanes[i].v->release) {
            lanes[i].v->release(&lanes[i].prepared);
        }
        krn_pages_free(&lanes[i].packed);
        one_op_buffer_free(&lanes[i].scratch);
        one_op_buffer_free(&lanes[i].out[0]);
    }
    one_op_free(op);
}

static bool wanted(const struct options *o, const char *layer)
{
    return !o->layer || strstr(layer, o->layer);
}

static size_t image(struct one_op *op, enum mdl_dtype dtype, size_t c, size_t h, size_t w)
{
    return one_op_tensor(
        op, dtype, MDL_HOME_ARENA, 4, (size_t[]){1, c, h, w},
        (ptrdiff_t[]){(ptrdiff_t)(h * w * c), 1, (ptrdiff_t)(w * c), (ptrdiff_t)c});
}

/* sums of @terms products as bytes again */
static void quantise(struct one_op *op, size_t channels, size_t terms)
{
    static const struct mdl_quant quant = {.x_scale = 1.0f};

    op->op.quant = &quant;
    op->op.channels = channels;
    op->op.scale = op->scale = malloc(channels * sizeof(float));
    for (size_t i = 0; i < channels; i++) {
        op->scale[i] = 1.0f / (64.0f * (float)terms);
    }
}

/* @k x @k */
static struct mdl_window square(size_t k, size_t stride, size_t pad)
{
    return (struct mdl_window){.rank = 2,
                               .kernel = {k, k},
                               .stride = {stride, stride},
                               .dilation = {1, 1},
                               .pad_begin = {pad, pad},
                               .pad_end = {pad, pad}};
}

/* one tap along dim @d */
static struct mdl_window flat(struct mdl_window w, size_t d)
{
    w.kernel[d] = 1;
    w.pad_begin[d] = w.pad_end[d] = 0;
    return w;
}

static void conv(const struct options *o, pthreadpool_t pool, const struct layer_conv *l,
                 struct mdl_window w, bool bytes)
{
    size_t ho = (l->h + 2 * w.pad_begin[0] - w.kernel[0]) / l->stride + 1;
    size_t wo = (l->w + 2 * w.pad_begin[1] - w.kernel[1]) / l->stride + 1;
    size_t cg = l->c / l->groups, taps = w.kernel[0] * w.kernel[1];
    char window[48] = "";
    enum mdl_dtype x = bytes ? MDL_U8 : MDL_F32;
    struct one_op *op = one_op_new(MDL_OP_CONV);

    if (w.kernel[0] != w.kernel[1]) {
        snprintf(window, sizeof(window), " %zux%zu", w.kernel[0], w.kernel[1]);
    }
    snprintf(op->name, sizeof(op->name), "%s%s%s", l->name, window, bytes ? " i8" : "");
    op->op.in[0] = image(op, x, l->c, l->h, l->w);
    op->op.in[1] = one_op_tensor(op, bytes ? MDL_I8 : MDL_F32, MDL_HOME_CONST, 4,
                                 (size_t[]){l->o, cg, w.kernel[0], w.kernel[1]}, NULL);
    op->op.out[0] = image(op, x, l->o, ho, wo);
    op->op.attr.conv.groups = l->groups;
    op->op.attr.conv.window = w;
    op->op.act = MDL_ACT_RELU;
    if (bytes) {
        quantise(op, l->o, cg * taps);
    }
    time_op(op, o, pool, 2.0 * (double)(cg * taps) * (double)(l->o * ho * wo));
}

static void transpose(const struct options *o, pthreadpool_t pool, const struct layer_conv *l)
{
    struct one_op *op = one_op_new(MDL_OP_CONV_TRANSPOSE);
    size_t og = l->o / l->groups;

    snprintf(op->name, sizeof(op->name), "%s", l->name);
    op->op.in[0] = image(op, MDL_F32, l->c, l->h, l->w);
    op->op.in[1] =
        one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){l->c, og, l->k, l->k}, NULL);
    op->op.out[0] = image(op, MDL_F32, l->o, l->h * l->stride, l->w * l->stride);
    op->op.attr.conv.groups = l->groups;
    op->op.attr.conv.window = square(l->k, l->stride, l->pad);
    time_op(op, o, pool, 2.0 * (double)(og * l->k * l->k) * (double)(l->c * l->h * l->w));
}

static void product(const struct options *o, pthreadpool_t pool, const struct layer_product *l,
                    bool bytes)
{
    enum mdl_dtype x = bytes ? MDL_U8 : MDL_F32;
    struct one_op *op = one_op_new(MDL_OP_GEMM);

    snprintf(op->name, sizeof(op->name), "%s%s", l->name, bytes ? " i8" : "");
    op->op.in[0] = one_op_tensor(op, x, MDL_HOME_ARENA, 2, (size_t[]){l->m, l->k}, NULL);
    op->op.in[1] = one_op_tensor(op, bytes ? MDL_I8 : MDL_F32, MDL_HOME_CONST, 2,
                                 (size_t[]){l->n, l->k}, NULL);
    op->op.out[0] = one_op_tensor(op, x, MDL_HOME_ARENA, 2, (size_t[]){l->m, l->n}, NULL);
    op->op.attr.gemm.trans_b = true;
    op->op.attr.gemm.alpha = op->op.attr.gemm.beta = 1;
    if (bytes) {
        quantise(op, l->n, l->k);
    }
    time_op(op, o, pool, 2.0 * (double)l->m * (double)l->k * (double)l->n);
}

static void pooling(const struct options *o, pthreadpool_t pool, const struct layer_pool *l,
                    bool bytes)
{
    size_t ho = (l->h + 2 * l->pad - l->k) / l->stride + 1;
    size_t wo = (l->w + 2 * l->pad - l->k) / l->stride + 1;
    enum mdl_dtype x = bytes ? MDL_U8 : MDL_F32;
    struct one_op *op = one_op_new(l->max ? MDL_OP_MAX_POOL : MDL_OP_AVG_POOL);

    snprintf(op->name, sizeof(op->name), "%s pool%s", l->name, bytes ? " i8" : "");
    op->op.in[0] = image(op, x, l->c, l->h, l->w);
    op->op.out[0] = image(op, x, l->c, ho, wo);
    op->op.attr.pool.window = square(l->k, l->stride, l->pad);
    if (bytes && !l->max) {
        quantise(op, l->c, 1);
        op->op.scale = NULL;
    }
    time_op(op, o, pool, (double)(l->k * l->k) * (double)(l->c * ho * wo));
}

static void sum(const struct options *o, pthreadpool_t pool, const struct layer_sum *l)
{
    struct one_op *op = one_op_new(MDL_OP_BINARY);

    snprintf(op->name, sizeof(op->name), "%s", l->name);
    op->op.in[0] = image(op, MDL_F32, l->c, l->h, l->w);
    op->op.in[1] = l->channels
                       ? one_op_tensor(op, MDL_F32, MDL_HOME_ARENA, 4,
                                       (size_t[]){1, l->c, l->h, l->w}, (ptrdiff_t[]){0, 1, 0, 0})
                       : image(op, MDL_F32, l->c, l->h, l->w);
    op->op.out[0] = image(op, MDL_F32, l->c, l->h, l->w);
    op->op.attr.binary = l->product ? MDL_BIN_MUL : MDL_BIN_ADD;
    time_op(op, o, pool, (double)(l->c * l->h * l->w));
}

static void layers(const struct options *o, pthreadpool_t pool, bool bytes)
{
    for (size_t i = 0; i < base_array_count(layer_convs); i++) {
        const struct layer_conv *l = &layer_convs[i];

        if (wanted(o, l->name)) {
            conv(o, pool, l, square(l->k, l->stride, l->pad), bytes);
        }
    }
    for (size_t i = 0; i < 2 * base_array_count(layer_lines); i++) {
        const struct layer_conv *l = &layer_lines[i / 2];

        if (wanted(o, l->name)) {
            conv(o, pool, l, flat(square(l->k, l->stride, l->pad), i % 2), bytes);
        }
    }
    for (size_t i = 0; i < base_array_count(layer_transposes) && !bytes; i++) {
        if (wanted(o, layer_transposes[i].name)) {
            transpose(o, pool, &layer_transposes[i]);
        }
    }
    for (size_t i = 0; i < base_array_count(layer_products); i++) {
        if (wanted(o, layer_products[i].name)) {
            product(o, pool, &layer_products[i], bytes);
        }
    }
    for (size_t i = 0; i < base_array_count(layer_pools); i++) {
        if (wanted(o, layer_pools[i].name)) {
            pooling(o, pool, &layer_pools[i], bytes);
        }
    }
    for (size_t i = 0; i < base_array_count(layer_sums) && !bytes; i++) {
        if (wanted(o, layer_sums[i].name)) {
            sum(o, pool, &layer_sums[i]);
        }
    }
}

int main(int argc, char **argv)
{
    struct options o = {.runs = 11, .width = 1, .frames = 1};
    struct krn_blas_status blas;
    char text[KRN_CPU_TEXT_MAX];
    pthreadpool_t pool = NULL;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0) {
            o.runs = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--width") == 0) {
            o.width = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--frames") == 0) {
            o.frames = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            o.only = argv[i + 1];
        } else if (strcmp(argv[i], "--layer") == 0) {
            o.layer = argv[i + 1];
        } else if (strcmp(argv[i], "--type") == 0 &&
                   (strcmp(argv[i + 1], "f32") == 0 || strcmp(argv[i + 1], "i8") == 0 ||
                    strcmp(argv[i + 1], "i7") == 0)) {
            o.type = argv[i + 1];
        } else {
            o.runs = 0;
        }
    }
    if (argc % 2 == 0 || o.runs == 0 || o.runs > RUNS_MAX || o.width == 0 || o.width > 64 ||
        o.frames == 0 || o.frames > FRAMES_MAX) {
        fputs("usage: primitives_bench [--runs N] [--width W] [--only NAME] [--layer NAME] "
              "[--type f32|i8|i7] [--frames N]\n",
              stderr);
        return 2;
    }
    if (krn_cpu_check(text) < 0) {
        fprintf(stderr, "primitives: %s\n", text);
        return 2;
    }
    krn_blas_check(&blas);
    fprintf(stderr, "OpenBLAS core %s%s%s\n", blas.core, blas.wanted[0] ? ", better: " : "",
            blas.wanted);
    if (o.width > 1) {
        pool = pthreadpool_create(o.width);
    }
    if (!o.type || strcmp(o.type, "f32") == 0) {
        layers(&o, pool, false);
    }
    if (!o.type || strcmp(o.type, "f32") != 0) {
        layers(&o, pool, true);
    }
    if (pool) {
        pthreadpool_destroy(pool);
    }
    return 0;
}
