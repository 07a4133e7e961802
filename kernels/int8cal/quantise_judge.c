/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the present calibration: which operators stay f32, and how good the answers are. */

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/int8cal/quantise_private.h"

bool krn_quantise_stopped(const struct krn_quantise *j)
{
    if (!j->o->stop || !atomic_load_explicit(j->o->stop, memory_order_relaxed)) {
        return false;
    }
    snprintf(j->error, MDL_ERROR_MAX, "given up");
    return true;
}

int krn_quantise_no_memory(const struct krn_quantise *j)
{
    snprintf(j->error, MDL_ERROR_MAX, "out of memory");
    return -ENOMEM;
}

double krn_quantise_work(const struct mdl_model *m, const struct mdl_op *op)
{
    double read = op->in[0] != MDL_NONE ? (double)mdl_elements(&m->tensors[op->in[0]]) : 1;

    return base_max(op->macs, base_max(read, 1.0));
}

int krn_quantise_add_keep(struct krn_quantise *j, const char *name, enum krn_kept_why why)
{
    struct mdl_calibration *c = j->q.calibration;
    char **names = realloc(c->keep, (c->keep_count + 1) * sizeof(*names));
    enum krn_kept_why *reasons;

    if (!names) {
        return krn_quantise_no_memory(j);
    }
    c->keep = names;
    reasons = realloc(j->q.why, (c->keep_count + 1) * sizeof(*reasons));
    if (!reasons) {
        return krn_quantise_no_memory(j);
    }
    j->q.why = reasons;
    names[c->keep_count] = strdup(name);
    if (!names[c->keep_count]) {
        return krn_quantise_no_memory(j);
    }
    reasons[c->keep_count++] = why;
    return 0;
}

void krn_quantise_cut_keep(struct krn_quantise *j, size_t count)
{
    struct mdl_calibration *c = j->q.calibration;

    while (c->keep_count > count) {
        free(c->keep[--c->keep_count]);
    }
}

/* Leads of the f32 model's classes, and how far integers move them. */
struct leads {
    double *of, *moved; /* [count], in one allocation */
    size_t count;
};

/* Takes the errors as independent of the leads. */
static double expected(const struct leads *l)
{
    size_t same = 0;

    for (size_t i = 0; i < l->count; i++) {
        for (size_t k = 0; k < l->count; k++) {
            same += l->of[i] + l->moved[k] > 0;
        }
    }
    return (double)same / ((double)l->count * (double)l->count);
}

static void compare(const struct mdl_model *m, const void *real, const void *whole,
                    struct krn_judgement *ret, struct leads *leads)
{
    double error = krn_answer_error(m, real, whole), lead, then;

    ret->same += krn_answer_agrees(m, real, whole);
    ret->sum += error;
    ret->square += error * error;
    ret->most = base_max(ret->most, error);
    if (krn_answer_lead(m, real, whole, &lead, &then)) {
        leads->of[leads->count] = lead;
        leads->moved[leads->count++] = then - lead;
    }
}

void krn_quantise_pass(struct krn_quantise *j, const char *what, size_t done, size_t count)
{
    j->pass.what = what;
    j->pass.done = done;
    j->pass.count = count;
}

int krn_quantise_judge(struct krn_quantise *j, const struct krn_answers *a,
                       struct krn_judgement *ret)
{
    base_autofree double *memory = calloc(2 * a->count + 1, sizeof(*memory));
    struct leads leads = {.of = memory, .moved = memory ? memory + a->count : NULL};
    struct mdl_load_options load = j->load;
    struct krn_runner whole = KRN_RUNNER_NULL;
    struct mdl_progress *told = mdl_progress_by(NULL); /* not of packing: it is for each pass */
    struct mdl_model *m = NULL;
    int r;

    *ret = (struct krn_judgement){0};
    load.calibration = j->q.calibration;
    r = memory ? mdl_load(j->path, &load, j->error, &m) : krn_quantise_no_memory(j);
    r = r < 0 ? r : krn_runner_init(&whole, m, j->by, j->error);
    (void)mdl_progress_by(told);
    for (size_t i = 0; r == 0 && i < a->count; i++) {
        mdl_progress(j->pass.what, j->pass.done * a->count + i, j->pass.count * a->count);
        r = krn_quantise_stopped(j) ? -ECANCELED
                                    : krn_example_input(j->e, a->example[i], m, j->input, j->error);
        if (r == 0) {
            krn_runner_run(&whole, j->input);
            compare(m, a->of[i], whole.outputs[0], ret, &leads);
        }
    }
    ret->expected = leads.count ? expected(&leads) : (double)ret->same / (double)a->count;
    krn_runner_deinit(&whole);
    mdl_free(m);
    return r;
}

struct krn_answers krn_quantise_ranked(const struct krn_quantise *j)
{
    struct krn_answers some = j->learned; /* the same arrays */

    some.count = base_min(some.count, (size_t)KRN_RANKED_EXAMPLES);
    return some;
}

bool krn_quantise_take(struct krn_quantise *j, size_t i)
{
    struct krn_quantise_way *w = &j->ways[i], now = {j->q.calibration, j->q.method};

    if (!w->calibration) {
        return false;
    }
    w->calibration->keep = base_take(now.calibration->keep);
    w->calibration->keep_count = now.calibration->keep_count;
    now.calibration->keep_count = 0;
    j->q.calibration = w->calibration;
    j->q.method = w->method;
    *w = now;
    return true;
}
