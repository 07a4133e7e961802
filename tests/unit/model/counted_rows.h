/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of lengths that depend on the data: a small model, what it gives, and its counts. */
#pragma once

#include "tests/unit/model/graph_builder.h"
#include "tests/unit/model/run_model.h"

static const struct mdl_load_options options = {.const_eval = krn_const_eval};

/* A model of f32 x, run once on @x. */
struct ran {
    struct gb g;
    struct mdl_model *m;
    struct run_model r;
};

static inline void ran_deinit(struct ran *a)
{
    run_model_deinit(&a->r);
    a->m = mdl_free(a->m);
    gb_free(&a->g);
}

/* Return: whether it compiled and ran. */
static inline bool run(struct ran *a, const float *x)
{
    a->m = gb_compile(&a->g, &options);
    if (!a->m) {
        fprintf(stderr, "%s\n", a->g.error);
        return false;
    }
    run_model_init(&a->r, a->m);
    if (!a->r.net) {
        return false;
    }
    memcpy(a->r.inputs[0], x, a->m->inputs[0].bytes);
    struct krn_mem mem = {a->r.arena, (const void *const *)a->r.inputs, a->r.outputs};
    struct krn_exec exec = {.width = 1, .scratch = a->r.scratch};

    krn_net_run_ops(a->r.net, 0, a->m->op_count - 1, &mem, &exec);
    return true;
}

static inline int64_t rows_of(const struct ran *a, size_t output)
{
    int64_t rows = -1;

    if (a->m->outputs[output].rows_output) {
        memcpy(&rows, a->r.outputs[a->m->outputs[output].rows_output - 1], sizeof(rows));
    }
    return rows;
}

static inline bool floats_are(const struct ran *a, size_t output, size_t n, const float *want)
{
    return a->m->outputs[output].bytes == n * sizeof(*want) &&
           memcmp(a->r.outputs[output], want, n * sizeof(*want)) == 0;
}

static inline bool ints_are(const struct ran *a, size_t output, size_t n, const int64_t *want)
{
    return a->m->outputs[output].bytes == n * sizeof(*want) &&
           memcmp(a->r.outputs[output], want, n * sizeof(*want)) == 0;
}
#define FLOATS(a, o, ...)                                                                          \
    floats_are(a, o, sizeof((const float[]){__VA_ARGS__}) / sizeof(float),                         \
               (const float[]){__VA_ARGS__})
#define INTS(a, o, ...)                                                                            \
    ints_are(a, o, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                       \
             (const int64_t[]){__VA_ARGS__})

/* x [5] -> the positive elements p, of a length that depends on the data */
static inline void begin(struct ran *a)
{
    *a = (struct ran){0};
    gb_init(&a->g, 18);
    gb_input(&a->g, "x", 1, (int64_t[]){5});
    gb_scalar(&a->g, "zero", 0);
    gb_i64(&a->g, "i0", 1, (int64_t[]){0});
    gb_i64(&a->g, "i1", 1, (int64_t[]){1});
    gb_i64(&a->g, "i2", 1, (int64_t[]){2});
    gb_i64(&a->g, "big", 1, (int64_t[]){INT64_MAX});
    gb_node(&a->g, "Greater", "", "x zero", "mask");
    gb_node(&a->g, "NonZero", "", "mask", "nz");
    gb_node(&a->g, "Transpose", "", "nz", "at");
    gb_node(&a->g, "GatherND", "", "x at", "p");
}
#define X ((const float[]){3, -1, 5, 4, -2})
#define RAN(a) base_cleanup(ran_deinit) struct ran a
