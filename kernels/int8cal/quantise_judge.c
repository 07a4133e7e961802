/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the present calibration: which operators stay f32, and how good the answers are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"
#include "kernels/int8cal/agree.h"
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

int krn_quantise_judge(struct krn_quantise *j, const struct krn_answers *a,
                       struct krn_judgement *ret)
{
    struct mdl_load_options load = j->load;
    struct krn_runner whole = KRN_RUNNER_NULL;
    struct mdl_model *m = NULL;
    int r;

    *ret = (struct krn_judgement){0};
    load.calibration = j->q.calibration;
    r = mdl_load(j->path, &load, j->error, &m);
    r = r < 0 ? r : krn_runner_init(&whole, m, NULL, j->error);
    for (size_t i = 0; r == 0 && i < a->count; i++) {
        double error;

        r = krn_quantise_stopped(j) ? -ECANCELED
                                    : krn_example_input(j->e, a->example[i], m, j->input, j->error);
        if (r < 0) {
            break;
        }
        krn_runner_run(&whole, j->input);
        error = krn_answer_error(m, a->of[i], whole.outputs[0]);
        ret->same += krn_answer_agrees(m, a->of[i], whole.outputs[0]);
        ret->sum += error;
        ret->square += error * error;
        ret->most = base_max(ret->most, error);
    }
    krn_runner_deinit(&whole);
    mdl_free(m);
    return r;
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
