/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "kernels/int8cal/quantise_private.h"

static void answers_deinit(struct krn_answers *a)
{
    for (size_t i = 0; a->of && i < a->count; i++) {
        free(a->of[i]);
    }
    free(a->of);
    free(a->example);
}

void krn_quantised_deinit(struct krn_quantised *q)
{
    q->calibration = mdl_calibration_free(q->calibration);
    free(q->why);
    q->why = NULL;
}

const char *krn_kept_why_name(enum krn_kept_why why)
{
    return why == KRN_KEPT_ASKED ? "asked" : why == KRN_KEPT_SLOWER ? "slower" : "accuracy";
}

static int keep_asked(struct krn_quantise *j)
{
    size_t at;
    int r = 0;

    for (size_t i = 0; r == 0 && i < j->o->keep_count; i++) {
        if (!krn_quantise_find_op(j->m, j->o->keep[i], &at)) {
            snprintf(j->error, MDL_ERROR_MAX, "the model has no operator '%.200s' to keep",
                     j->o->keep[i]);
            return -EINVAL;
        }
        r = krn_quantise_add_keep(j, j->o->keep[i], KRN_KEPT_ASKED);
    }
    return r;
}

static double integer_macs(const struct mdl_model *m)
{
    double sum = 0;

    for (size_t i = 0; i < m->op_count; i++) {
        sum += m->ops[i].quant ? m->ops[i].macs : 0;
    }
    return sum;
}

/* Counts the operators that could be quantised, and those that the calibration quantises. */
static int count_integers(struct krn_quantise *j)
{
    struct mdl_calibration *c = j->q.calibration;
    struct mdl_load_options load = j->load;
    size_t kept = c->keep_count, *counts[2] = {&j->q.integers, &j->q.products};
    double macs[2] = {0};
    int r = 0;

    load.calibration = c;
    for (size_t way = 0; r == 0 && way < 2; way++) {
        struct mdl_model *m = NULL;

        c->keep_count = way == 0 ? kept : 0;
        r = mdl_load(j->path, &load, j->error, &m);
        c->keep_count = kept;
        if (r == 0) {
            *counts[way] += mdl_integer_ops(m);
            macs[way] = integer_macs(m);
        }
        mdl_free(m);
    }
    j->q.f32_work = macs[1] > 0 ? 1 - macs[0] / macs[1] : 0;
    return r;
}

static int prepare(struct krn_quantise *j)
{
    int r = mdl_load(j->path, &j->load, j->error, &j->m);
    struct krn_answers some;

    r = r < 0 ? r : krn_examples_fit(j->e, j->m, j->error);
    r = r < 0 ? r : krn_runner_init(&j->real, j->m, NULL, j->error);
    if (r < 0) {
        return r;
    }
    j->input = aligned_alloc(64, base_align_up(j->m->inputs[0].bytes + 1, 64));
    j->saved = calloc(j->m->op_count + 1, sizeof(*j->saved));
    for (size_t i = 0; j->saved && i < j->m->op_count; i++) {
        j->saved[i] = krn_quantise_work(j->m, &j->m->ops[i]); /* until it is measured */
    }
    r = j->input && j->saved ? krn_quantise_learn(j) : krn_quantise_no_memory(j);
    r = r < 0 ? r : krn_quantise_find_judges(j);
    some = krn_quantise_ranked(j);
    r = r < 0 ? r : krn_quantise_answer(j, &some);
    r = r < 0 ? r : krn_quantise_ranges(j);
    r = r < 0 ? r : keep_asked(j);
    return r < 0 ? r : krn_quantise_answer(j, &j->judged);
}

static int decide(struct krn_quantise *j)
{
    bool timed = j->o->measure_ns && j->o->cpu_count;
    struct krn_judgement of = {0};
    size_t kept;
    int r = count_integers(j);

    if (r == 0 && j->q.products == 0) {
        snprintf(j->error, MDL_ERROR_MAX, "nothing in this model can be quantised");
        return KRN_QUANTISE_E_USELESS;
    }
    r = r == 0 && timed ? krn_quantise_speed(j) : r;
    kept = j->q.calibration->keep_count;
    r = r < 0 ? r : krn_quantise_bound(j, &of);
    j->q.agreement = (double)of.same / (double)j->judged.count;
    j->q.error_mean = of.sum / (double)j->judged.count;
    j->q.error_most = of.most;
    if (r == 0 && timed && j->q.calibration->keep_count > kept) {
        r = krn_quantise_measure_again(j);
    }
    if (r == 0 && timed && j->q.int8_ns >= j->q.f32_ns) {
        snprintf(j->error, MDL_ERROR_MAX,
                 "on integers it is no faster here: %.3f ms a frame instead of %.3f",
                 j->q.int8_ns / 1e6, j->q.f32_ns / 1e6);
        return KRN_QUANTISE_E_USELESS;
    }
    j->q.integers = j->q.products = 0;
    r = r == 0 ? count_integers(j) : r;
    if (r == 0 && j->q.integers == 0) {
        snprintf(j->error, MDL_ERROR_MAX, "every operator stays f32");
        return KRN_QUANTISE_E_USELESS;
    }
    return r;
}

int krn_quantise(const char *path, const struct mdl_load_options *load, struct krn_examples *e,
                 const struct krn_quantise_options *o, char ret_error[MDL_ERROR_MAX],
                 struct krn_quantised *ret)
{
    struct krn_quantise j = {.path = path, .load = *load, .e = e, .o = o, .error = ret_error};
    uint64_t start = base_now_ns();
    int r;

    j.load.calibration = NULL;
    r = prepare(&j);
    r = r < 0 ? r : decide(&j);
    j.q.took_ns = base_now_ns() - start;
    if (r == KRN_QUANTISE_E_USELESS) {
        krn_quantised_deinit(&j.q);
    }
    if (r >= 0) {
        *ret = j.q;
    } else {
        krn_quantised_deinit(&j.q);
    }
    for (size_t i = 0; i < KRN_QUANTISE_WAYS; i++) {
        mdl_calibration_free(j.ways[i].calibration);
    }
    krn_calibrate_free(j.ranges);
    krn_runner_deinit(&j.real);
    answers_deinit(&j.learned);
    answers_deinit(&j.judged);
    free(j.input);
    free(j.saved);
    mdl_free(j.m);
    return r;
}
