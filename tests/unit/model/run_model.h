/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/model/run_model.h - runs a compiled model once on the reference operators
 *
 * The arena starts full of NaN patterns, which expose reads of memory that was never written.
 */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "tests/harness.h"

#define RUN_MODEL_IO 16

struct run_model {
    const struct mdl_model *m;
    struct krn_net *net;
    void *inputs[RUN_MODEL_IO], *outputs[RUN_MODEL_IO], *arena, *scratch;
};

static inline void *run_model_alloc(size_t bytes, int fill)
{
    void *p = aligned_alloc(64, base_align_up(bytes + 64, 64));

    if (!p) {
        abort();
    }
    memset(p, fill, base_align_up(bytes + 64, 64));
    return p;
}

static inline void run_model_init(struct run_model *r, const struct mdl_model *m)
{
    char error[MDL_ERROR_MAX];

    *r = (struct run_model){.m = m};
    if (krn_net_new(m, "__ref", error, &r->net) < 0) {
        fprintf(stderr, "%s\n", error);
        return;
    }
    for (size_t i = 0; i < m->input_count; i++) {
        r->inputs[i] = run_model_alloc(m->inputs[i].bytes, 0);
    }
    for (size_t i = 0; i < m->output_count; i++) {
        r->outputs[i] = run_model_alloc(m->outputs[i].bytes, 0xff);
    }
    r->arena = run_model_alloc(m->arena_bytes, 0xff);
    r->scratch = run_model_alloc(krn_net_scratch_bytes(r->net, 1), 0);
}

/* f32 inputs are random numbers from @seed. Return: false if the net could not be made */
static inline bool run_model_go(struct run_model *r, uint64_t seed)
{
    struct krn_mem mem = {r->arena, (const void *const *)r->inputs, r->outputs};
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};
    uint64_t saved = t_state;

    if (!r->net) {
        return false;
    }
    t_state = seed;
    for (size_t i = 0; i < r->m->input_count; i++) {
        float *x = r->inputs[i];

        if (r->m->tensors[r->m->inputs[i].tensor].dtype != MDL_F32) {
            continue;
        }
        for (size_t k = 0; k < r->m->inputs[i].bytes / sizeof(*x); k++) {
            x[k] = t_float();
        }
    }
    t_state = saved;
    krn_net_run_ops(r->net, 0, r->m->op_count - 1, &mem, &exec);
    return true;
}

/* largest difference of f32 output @i, relative to its largest element; infinite for a NaN */
static inline double run_model_distance(const struct run_model *a, const struct run_model *b,
                                        size_t i)
{
    const float *x = a->outputs[i], *y = b->outputs[i];
    size_t count = a->m->outputs[i].bytes / sizeof(*x);
    double largest = 1e-30, worst = 0;

    if (a->m->outputs[i].bytes != b->m->outputs[i].bytes) {
        return INFINITY;
    }
    for (size_t k = 0; k < count; k++) {
        double d = fabs((double)x[k] - (double)y[k]);

        largest = fmax(largest, fabs((double)y[k]));
        worst = d == d ? fmax(worst, d) : INFINITY;
    }
    return worst / largest;
}

static inline void run_model_deinit(struct run_model *r)
{
    krn_net_free(r->net);
    for (size_t i = 0; i < RUN_MODEL_IO; i++) {
        free(r->inputs[i]);
        free(r->outputs[i]);
    }
    free(r->arena);
    free(r->scratch);
    *r = (struct run_model){0};
}
