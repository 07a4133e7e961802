/* SPDX-License-Identifier: Apache-2.0 */
/*
 * primitives - times every variant on the layers of tests/kernels/layers.h
 *
 *     primitives [--runs N] [--width W] [--only NAME] [--layer NAME]
 *
 * One JSON object per line and (layer, variant): median and 10th / 90th percentile microseconds of
 * N runs, GFLOP/s. The variants of a layer take turns, so that a busy moment hits them alike. Times
 * are of the thread's CPU clock where the width is 1: another program on the core does not count.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/blas_check.h"
#include "tests/kernels/layers.h"
#include "tests/kernels/one_op.h"

#define RUNS_MAX 1000u
#define VARIANTS_MAX 64u

struct options {
    size_t runs, width;
    const char *only, *layer;
};

struct lane {
    const struct krn_variant *v;
    struct one_op_buffer packed, scratch, out[MDL_OP_OUT_MAX];
    struct krn_prepared prepared;
    double us[RUNS_MAX];
};

static uint64_t clock_ns(size_t width)
{
    struct timespec t;

    clock_gettime(width == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
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

/* Return: whether the lane's variant can run */
static bool lane_prepare(struct lane *l, struct one_op *op, size_t width)
{
    const struct krn_variant *v = l->v;

    l->prepared = (struct krn_prepared){0};
    if (!v->prepare || (v->prepare(&op->m, &op->op, l->packed.data, 1, &l->prepared) == 0 &&
                        v->prepare(&op->m, &op->op, l->packed.data, width, &l->prepared) == 0)) {
        return true;
    }
    fprintf(stderr, "%s: %s cannot be prepared\n", op->name, v->name);
    v->release(&l->prepared);
    return false;
}

static void time_op(struct one_op *op, const struct options *o, pthreadpool_t pool, double flops)
{
    static struct lane lanes[VARIANTS_MAX];
    size_t count, used = 0;
    const struct krn_variant *v = krn_variants(&count);

    for (size_t i = 0; i < op->m.tensor_count; i++) {
        float *p = (float *)op->buffers[i].data;

        for (size_t e = 0; e < op->buffers[i].bytes / sizeof(float); e++) {
            float x = (float)(e % 17) / 17.0f - 0.4f;

            memcpy(p + e, &x, sizeof(x));
        }
    }
    for (size_t i = 0; i < count && used < VARIANTS_MAX; i++) {
        struct lane *l = &lanes[used];

        if (v[i].reference || v[i].fused || v[i].kind != op->op.kind ||
            (v[i].needs & ~krn_cpu_features()) || (o->only && !strstr(v[i].name, o->only)) ||
            !v[i].supports(&op->m, &op->op)) {
            continue;
        }
        l->v = &v[i];
        l->packed =
            one_op_buffer_new(v[i].packed_bytes ? v[i].packed_bytes(&op->m, &op->op) : 0, 64);
        l->scratch = one_op_buffer_new(
            v[i].scratch_bytes ? v[i].scratch_bytes(&op->m, &op->op, o->width) : 0, 64);
        l->out[0] = one_op_buffer_new(op->buffers[op->op.out[0]].bytes, 64);
        if (v[i].pack) {
            v[i].pack(&op->m, &op->op, l->packed.data);
        }
        used += lane_prepare(l, op, o->width);
    }
    for (size_t r = 0; r < o->runs + 1; r++) {
        for (size_t i = 0; i < used; i++) {
            struct krn_call c = one_op_call(op, lanes[i].out, pool, o->width, lanes[i].packed.data,
                                            lanes[i].scratch.data);
            uint64_t start;

            c.prepared = lanes[i].prepared.object;

            /* the cold run after the other variants is not the one that counts */
            lanes[i].v->run(&c);
            start = clock_ns(o->width);
            lanes[i].v->run(&c);
            lanes[i].us[r ? r - 1 : 0] = (double)(clock_ns(o->width) - start) / 1e3;
        }
    }
    for (size_t i = 0; i < used; i++) {
        report(op->name, &lanes[i], o, flops);
        if (lanes[i].v->release) {
            lanes[i].v->release(&lanes[i].prepared);
        }
        one_op_buffer_free(&lanes[i].packed);
        one_op_buffer_free(&lanes[i].scratch);
        one_op_buffer_free(&lanes[i].out[0]);
    }
    one_op_free(op);
}

static bool wanted(const struct options *o, const char *layer)
{
    return !o->layer || strstr(layer, o->layer);
}

static void convs(const struct options *o, pthreadpool_t pool)
{
    for (size_t i = 0; i < base_array_count(layer_convs); i++) {
        const struct layer_conv *l = &layer_convs[i];
        size_t ho = (l->h + 2 * l->pad - l->k) / l->stride + 1;
        size_t wo = (l->w + 2 * l->pad - l->k) / l->stride + 1;
        size_t cg = l->c / l->groups;
        struct one_op *op;

        if (!wanted(o, l->name)) {
            continue;
        }
        op = one_op_new(MDL_OP_CONV);
        snprintf(op->name, sizeof(op->name), "%s", l->name);
        op->op.in[0] = one_op_image(op, 1, l->c, l->h, l->w, 0);
        op->op.in[1] =
            one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){l->o, cg, l->k, l->k}, NULL);
        op->op.out[0] = one_op_image(op, 1, l->o, ho, wo, 0);
        op->op.attr.conv.groups = l->groups;
        op->op.attr.conv.window = (struct mdl_window){.rank = 2,
                                                      .kernel = {l->k, l->k},
                                                      .stride = {l->stride, l->stride},
                                                      .dilation = {1, 1},
                                                      .pad_begin = {l->pad, l->pad},
                                                      .pad_end = {l->pad, l->pad}};
        op->op.act = MDL_ACT_RELU;
        time_op(op, o, pool, 2.0 * (double)(cg * l->k * l->k) * (double)(l->o * ho * wo));
    }
}

static void products(const struct options *o, pthreadpool_t pool)
{
    for (size_t i = 0; i < base_array_count(layer_products); i++) {
        const struct layer_product *l = &layer_products[i];
        struct one_op *op;

        if (!wanted(o, l->name)) {
            continue;
        }
        op = one_op_new(MDL_OP_GEMM);
        snprintf(op->name, sizeof(op->name), "%s", l->name);
        op->op.in[0] = one_op_tensor(op, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){l->m, l->k}, NULL);
        op->op.in[1] = one_op_tensor(op, MDL_F32, MDL_HOME_CONST, 2, (size_t[]){l->n, l->k}, NULL);
        op->op.out[0] = one_op_tensor(op, MDL_F32, MDL_HOME_ARENA, 2, (size_t[]){l->m, l->n}, NULL);
        op->op.attr.gemm.trans_b = true;
        op->op.attr.gemm.alpha = op->op.attr.gemm.beta = 1;
        time_op(op, o, pool, 2.0 * (double)l->m * (double)l->k * (double)l->n);
    }
}

static void pools(const struct options *o, pthreadpool_t pool)
{
    for (size_t i = 0; i < base_array_count(layer_pools); i++) {
        const struct layer_pool *l = &layer_pools[i];
        size_t ho = (l->h + 2 * l->pad - l->k) / l->stride + 1;
        size_t wo = (l->w + 2 * l->pad - l->k) / l->stride + 1;
        struct one_op *op;

        if (!wanted(o, l->name)) {
            continue;
        }
        op = one_op_new(l->max ? MDL_OP_MAX_POOL : MDL_OP_AVG_POOL);
        snprintf(op->name, sizeof(op->name), "%s pool", l->name);
        op->op.in[0] = one_op_image(op, 1, l->c, l->h, l->w, 0);
        op->op.out[0] = one_op_image(op, 1, l->c, ho, wo, 0);
        op->op.attr.pool.window = (struct mdl_window){.rank = 2,
                                                      .kernel = {l->k, l->k},
                                                      .stride = {l->stride, l->stride},
                                                      .dilation = {1, 1},
                                                      .pad_begin = {l->pad, l->pad},
                                                      .pad_end = {l->pad, l->pad}};
        time_op(op, o, pool, (double)(l->k * l->k) * (double)(l->c * ho * wo));
    }
}

int main(int argc, char **argv)
{
    struct options o = {.runs = 11, .width = 1};
    struct krn_blas_status blas;
    pthreadpool_t pool = NULL;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--runs") == 0) {
            o.runs = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--width") == 0) {
            o.width = strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            o.only = argv[i + 1];
        } else if (strcmp(argv[i], "--layer") == 0) {
            o.layer = argv[i + 1];
        } else {
            o.runs = 0;
        }
    }
    if (argc % 2 == 0 || o.runs == 0 || o.runs > RUNS_MAX || o.width == 0 || o.width > 64) {
        fputs("usage: primitives [--runs N] [--width W] [--only NAME] [--layer NAME]\n", stderr);
        return 2;
    }
    krn_blas_check(&blas);
    fprintf(stderr, "OpenBLAS core %s%s%s\n", blas.core, blas.wanted[0] ? ", better: " : "",
            blas.wanted);
    if (o.width > 1) {
        pool = pthreadpool_create(o.width);
    }
    convs(&o, pool);
    products(&o, pool);
    pools(&o, pool);
    if (pool) {
        pthreadpool_destroy(pool);
    }
    return 0;
}
