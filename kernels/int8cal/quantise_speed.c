/* SPDX-License-Identifier: Apache-2.0 */
/* Finds operators that are slower on integers, and the time that the others save. */

#include "base/base.h"
#include "kernels/int8cal/quantise_private.h"
#include "kernels/select/choose.h"

#define WORTH 0.98 /* keeping ops f32 for speed must make the model 2 % faster */

struct timed { /* times of a model's chosen primitives (kernels/select/choose.h) */
    struct mdl_model *m;
    double *op_ns; /* [m->op_count]: sum over the cores */
    double ns;
};

static void timed_deinit(struct timed *t)
{
    mdl_free(t->m);
    free(t->op_ns);
}

const struct mdl_op *krn_quantise_find_op(const struct mdl_model *m, const char *name, size_t *ret)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (strcmp(m->ops[i].name, name) == 0) {
            *ret = i;
            return &m->ops[i];
        }
    }
    return NULL;
}

/* Measures the model with calibration @c (NULL: f32) on every kind of core. */
static int measure(struct krn_quantise *j, const struct mdl_calibration *c, struct timed *ret)
{
    struct mdl_load_options load = j->load;
    int r;

    load.calibration = c;
    r = mdl_load(j->path, &load, j->error, &ret->m);
    ret->op_ns = r == 0 ? calloc(ret->m->op_count + 1, sizeof(*ret->op_ns)) : NULL;
    r = r == 0 && !ret->op_ns ? krn_quantise_no_memory(j) : r;
    for (size_t k = 0; r == 0 && k < j->o->cpu_count; k++) {
        struct krn_measure_options o = {
            .cpu = j->o->cpus[k], .budget_ns = j->o->measure_ns, .stop = j->o->stop};
        struct krn_choose_options choose = {.exact = true};
        struct krn_chosen best = KRN_CHOSEN_NULL;
        struct krn_times times = KRN_TIMES_NULL;

        r = krn_measure(ret->m, &o, &times);
        r = r < 0 ? r : krn_choose(&times, &choose, &best);
        if (r < 0) {
            snprintf(j->error, MDL_ERROR_MAX, "its primitives could not be measured: %s",
                     strerror(-r));
        }
        for (size_t i = 0; r == 0 && i < ret->m->op_count; i++) {
            ret->op_ns[i] += best.op_ns[i];
        }
        ret->ns += r == 0 ? best.ns : 0;
        krn_chosen_deinit(&best);
        krn_times_deinit(&times);
    }
    return r;
}

/* Keeps ops f32 that are slower on integers, if that makes the model faster. @whole: then measured
 * again. */
static int keep_slower(struct krn_quantise *j, const struct timed *real, struct timed *whole)
{
    size_t before = j->q.calibration->keep_count, at;
    struct timed mixed = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < whole->m->op_count; i++) {
        const struct mdl_op *op = &whole->m->ops[i];

        if (op->quant && krn_quantise_find_op(real->m, op->name, &at) &&
            whole->op_ns[i] > real->op_ns[at]) {
            r = krn_quantise_add_keep(j, op->name, KRN_KEPT_SLOWER);
        }
    }
    if (r < 0 || j->q.calibration->keep_count == before) {
        return r;
    }
    r = measure(j, j->q.calibration, &mixed);
    if (r == 0 && mixed.ns < WORTH * whole->ns) {
        timed_deinit(whole);
        *whole = mixed;
        return 0;
    }
    krn_quantise_cut_keep(j, before);
    timed_deinit(&mixed);
    return r;
}

/* The time that each operator saves; at least a twentieth of its time, since times are noisy. */
static void find_saved(struct krn_quantise *j, const struct timed *real, const struct timed *whole)
{
    size_t at;

    for (size_t i = 0; i < whole->m->op_count; i++) {
        if (whole->m->ops[i].quant && krn_quantise_find_op(j->m, whole->m->ops[i].name, &at)) {
            j->saved[at] = base_max(real->op_ns[at] - whole->op_ns[i], 0.05 * real->op_ns[at]);
        }
    }
}

int krn_quantise_speed(struct krn_quantise *j)
{
    struct timed real = {0}, whole = {0};
    int r = measure(j, NULL, &real);

    r = r < 0 ? r : measure(j, j->q.calibration, &whole);
    if (r == 0) {
        find_saved(j, &real, &whole);
    }
    r = r < 0 ? r : keep_slower(j, &real, &whole);
    j->q.f32_ns = real.ns / (double)j->o->cpu_count;
    j->q.int8_ns = whole.ns / (double)j->o->cpu_count;
    timed_deinit(&real);
    timed_deinit(&whole);
    return r;
}

/* What stays f32 for accuracy changes the time. */
int krn_quantise_measure_again(struct krn_quantise *j)
{
    struct timed whole = {0};
    int r = measure(j, j->q.calibration, &whole);

    j->q.int8_ns = whole.ns / (double)j->o->cpu_count;
    timed_deinit(&whole);
    return r;
}
