/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8cal/runner.h"

#include <math.h>

#include "base/base.h"
#include "base/leaves/load_work.h"

static uint8_t *memory(size_t bytes)
{
    return aligned_alloc(64, base_align_up(base_max(bytes, (size_t)64), 64));
}

void krn_runner_deinit(struct krn_runner *r)
{
    krn_net_free(r->net);
    free(r->arena);
    free(r->scratch);
    for (size_t i = 0; r->outputs && i < r->m->output_count; i++) {
        free(r->outputs[i]);
    }
    free(r->outputs);
    *r = KRN_RUNNER_NULL;
}

int krn_runner_init(struct krn_runner *r, const struct mdl_model *m, const struct krn_choice *c,
                    char ret_error[MDL_ERROR_MAX])
{
    size_t scratch = 0;
    int error;

    *r = (struct krn_runner){.m = m};
    if (m->input_count != 1 || m->output_count == 0 || m->op_count == 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "the model needs one input, an output and an operator");
        return -EINVAL;
    }
    error = c ? krn_net_new_chosen(m, c, 1, KRN_PACK_ONE_STAGE, ret_error, &r->net)
              : krn_net_new(m, NULL, ret_error, &r->net);
    if (error == 0 && c) {
        error = krn_net_join(r->net, 0, 0, m->op_count - 1, 1, &scratch);
    } else if (error == 0) { /* runs any range of operators */
        scratch = krn_net_scratch_bytes(r->net, 1);
    }
    if (error < 0) {
        return error;
    }
    r->arena = memory(m->arena_bytes);
    r->scratch = memory(scratch);
    r->outputs = calloc(m->output_count, sizeof(*r->outputs));
    for (size_t i = 0; r->outputs && i < m->output_count; i++) {
        r->outputs[i] = memory(m->outputs[i].bytes);
        error = r->outputs[i] ? error : -ENOMEM;
    }
    error = r->arena && r->scratch && r->outputs ? error : -ENOMEM;
    if (error < 0) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
    }
    return error;
}

void krn_runner_run(struct krn_runner *r, const void *input)
{
    struct krn_mem mem = {
        .arena = r->arena, .inputs = &input, .outputs = (void *const *)r->outputs};
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};

    krn_net_run_ops(r->net, 0, r->m->op_count - 1, &mem, &exec);
}

static size_t top(const float *y, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        if (y[i] > y[best] || (isnan(y[best]) && !isnan(y[i]))) {
            best = i;
        }
    }
    return best;
}

static bool is_f32(const struct mdl_model *m)
{
    return m->tensors[m->outputs[0].tensor].dtype == MDL_F32;
}

bool krn_answer_agrees(const struct mdl_model *m, const void *a, const void *b)
{
    size_t bytes = m->outputs[0].bytes;

    return is_f32(m) ? top(a, bytes / sizeof(float)) == top(b, bytes / sizeof(float))
                     : memcmp(a, b, bytes) == 0;
}

double krn_answer_error(const struct mdl_model *m, const void *a, const void *b)
{
    const float *x = a, *y = b;
    double worst = 0, most = 1e-30;

    if (!is_f32(m)) {
        return 0;
    }
    for (size_t i = 0; i < m->outputs[0].bytes / sizeof(*x); i++) {
        double away = fabs((double)x[i] - (double)y[i]);

        if (isnan(x[i]) != isnan(y[i])) {
            return INFINITY;
        }
        worst = away > worst ? away : worst;
        most = base_max(most, fabs((double)x[i]));
    }
    return worst / most;
}

static bool is_distribution(const float *y, size_t count)
{
    double sum = 0;
    bool within = true;

    for (size_t i = 0; i < count; i++) {
        within &= y[i] >= 0 && y[i] <= 1;
        sum += (double)y[i];
    }
    return within && fabs(sum - 1) < 1e-3;
}

static double lead(const float *y, size_t count, size_t class, bool logs)
{
    float next = -INFINITY;

    for (size_t i = 0; i < count; i++) {
        if (isnan(y[i])) {
            return NAN;
        }
        next = i != class && y[i] > next ? y[i] : next;
    }
    return logs ? log(base_max((double)y[class], 1e-30)) - log(base_max((double)next, 1e-30))
                : (double)y[class] - (double)next;
}

bool krn_answer_lead(const struct mdl_model *m, const void *a, const void *b, double *ret_a,
                     double *ret_b)
{
    size_t count = m->outputs[0].bytes / sizeof(float);
    bool logs;

    if (!is_f32(m) || count < 2) {
        return false;
    }
    logs = is_distribution(a, count);
    *ret_a = lead(a, count, top(a, count), logs);
    *ret_b = lead(b, count, top(a, count), logs);
    return true;
}

int krn_agreement(const struct mdl_model *m, const struct krn_choice *a, const struct krn_choice *b,
                  const struct krn_examples *e, double *ret)
{
    struct krn_runner x = KRN_RUNNER_NULL, y = KRN_RUNNER_NULL;
    base_autofree void *input = NULL;
    char error[MDL_ERROR_MAX];
    size_t same = 0;
    int r;

    if (e->count == 0) {
        return -EINVAL;
    }
    r = krn_runner_init(&x, m, a, error);
    r = r < 0 ? r : krn_runner_init(&y, m, b, error);
    input = r < 0 ? NULL : aligned_alloc(64, base_align_up(m->inputs[0].bytes + 1, 64));
    r = r == 0 && !input ? -ENOMEM : r;
    for (size_t i = 0; r == 0 && i < e->count; i++) {
        mdl_progress("judging by examples", i, e->count);
        r = krn_example_input(e, i, m, input, error);
        if (r == 0) {
            krn_runner_run(&x, input);
            krn_runner_run(&y, input);
            same += krn_answer_agrees(m, x.outputs[0], y.outputs[0]);
        }
    }
    krn_runner_deinit(&x);
    krn_runner_deinit(&y);
    if (r == 0) {
        *ret = (double)same / (double)e->count;
    }
    return r;
}
