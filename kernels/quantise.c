/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8cal/quantise.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "kernels/choose.h"
#include "kernels/quantise_private.h"

#define ANSWERS_BYTES_MAX ((size_t)512 << 20) /* of the f32 model's answers that are kept */
#define EQUALISED_WORTH 0.8                   /* of the mean square error */
#define WORTH 0.98 /* what stays f32 for speed has to make the model faster by 2 % */

struct timed { /* a model's chosen rows, as kernels/choose.h has them */
    struct mdl_model *m;
    double *op_ns; /* [m->op_count]: sum over the cores */
    double ns;
};

static void timed_deinit(struct timed *t)
{
    mdl_free(t->m);
    free(t->op_ns);
}

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

bool krn_quantise_stopped(const struct krn_quantise *j)
{
    if (!j->o->stop || !atomic_load_explicit(j->o->stop, memory_order_relaxed)) {
        return false;
    }
    snprintf(j->error, MDL_ERROR_MAX, "given up");
    return true;
}

static int no_memory(const struct krn_quantise *j)
{
    snprintf(j->error, MDL_ERROR_MAX, "out of memory");
    return -ENOMEM;
}

/* ---- what stays f32 ---- */

int krn_quantise_add_keep(struct krn_quantise *j, const char *name, enum krn_kept_why why)
{
    struct mdl_calibration *c = j->q.calibration;
    char **names = realloc(c->keep, (c->keep_count + 1) * sizeof(*names));
    enum krn_kept_why *reasons;

    if (!names) {
        return no_memory(j);
    }
    c->keep = names;
    reasons = realloc(j->q.why, (c->keep_count + 1) * sizeof(*reasons));
    if (!reasons) {
        return no_memory(j);
    }
    j->q.why = reasons;
    names[c->keep_count] = strdup(name);
    if (!names[c->keep_count]) {
        return no_memory(j);
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

static const struct mdl_op *find_op(const struct mdl_model *m, const char *name, size_t *ret)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (strcmp(m->ops[i].name, name) == 0) {
            *ret = i;
            return &m->ops[i];
        }
    }
    return NULL;
}

static int keep_asked(struct krn_quantise *j)
{
    size_t at;
    int r = 0;

    for (size_t i = 0; r == 0 && i < j->o->keep_count; i++) {
        if (!find_op(j->m, j->o->keep[i], &at)) {
            snprintf(j->error, MDL_ERROR_MAX, "the model has no operator '%.200s' to keep",
                     j->o->keep[i]);
            return -EINVAL;
        }
        r = krn_quantise_add_keep(j, j->o->keep[i], KRN_KEPT_ASKED);
    }
    return r;
}

/* ---- examples ---- */

static bool calibrates(const struct krn_quantise *j, size_t i)
{
    return i / base_max(j->o->group, (size_t)1) % 2 == 0;
}

/* Those that are ranked by come first: some of all, since neighbours may be alike. */
static void spread(struct krn_answers *a)
{
    for (size_t k = 0; k < KRN_RANKED_EXAMPLES && a->count > KRN_RANKED_EXAMPLES; k++) {
        size_t at = k * a->count / KRN_RANKED_EXAMPLES, other = a->example[at];

        a->example[at] = a->example[k];
        a->example[k] = other;
    }
}

/* Shows the calibrating examples; those that give NaN or infinity inside the model count for
 * nothing. */
static int learn(struct krn_quantise *j)
{
    enum krn_calibrate_method method = j->o->either ? KRN_CALIBRATE_KL : j->o->method;
    char why[MDL_ERROR_MAX];
    int r = krn_calibrate_new(j->m, method, j->error, &j->ranges);

    j->learned.example = calloc(j->e->count, sizeof(size_t));
    j->learned.of = calloc(j->e->count, sizeof(*j->learned.of));
    r = r == 0 && (!j->learned.example || !j->learned.of) ? no_memory(j) : r;
    for (size_t i = 0; r == 0 && i < j->e->count; i++) {
        if (!calibrates(j, i)) {
            continue;
        }
        if (krn_quantise_stopped(j)) {
            r = -ECANCELED;
        } else if (krn_example_input(j->e, i, j->m, j->input, why) < 0 ||
                   krn_calibrate_tensor(j->ranges, j->input, j->m->inputs[0].bytes, why) < 0) {
            krn_examples_leave_out(j->e, j->e->items[i].name, why);
        } else {
            j->learned.example[j->learned.count++] = i;
        }
    }
    if (r == 0 && j->learned.count == 0) {
        snprintf(j->error, MDL_ERROR_MAX, "no example can calibrate the model; %.400s", j->e->note);
        r = -ENOENT;
    }
    spread(&j->learned);
    return r;
}

/* The examples that judge: the other half, or the same if there is none. */
static int find_judges(struct krn_quantise *j)
{
    struct krn_answers *a = &j->judged;
    size_t most =
        base_max(ANSWERS_BYTES_MAX / base_max(j->m->outputs[0].bytes, (size_t)1), (size_t)1);

    a->example = calloc(j->e->count, sizeof(size_t));
    a->of = calloc(j->e->count, sizeof(*a->of));
    if (!a->example || !a->of) {
        return no_memory(j);
    }
    for (size_t i = 0; i < j->e->count && a->count < most; i++) {
        if (!calibrates(j, i)) {
            a->example[a->count++] = i;
        }
    }
    j->q.held_out = a->count > 0;
    for (size_t i = 0; i < j->learned.count && !j->q.held_out && a->count < most; i++) {
        a->example[a->count++] = j->learned.example[i];
    }
    j->q.calibrated = j->learned.count;
    j->q.judged = a->count;
    return 0;
}

/* What the f32 model answers. */
static int answer(struct krn_quantise *j, struct krn_answers *a)
{
    size_t bytes = j->m->outputs[0].bytes;
    int r = 0;

    for (size_t i = 0; r == 0 && i < a->count; i++) {
        a->of[i] = malloc(base_max(bytes, (size_t)1));
        r = !a->of[i] ? no_memory(j)
            : krn_quantise_stopped(j)
                ? -ECANCELED
                : krn_example_input(j->e, a->example[i], j->m, j->input, j->error);
        if (r == 0) {
            krn_runner_run(&j->real, j->input);
            memcpy(a->of[i], j->real.outputs[0], bytes);
        }
    }
    return r;
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

/* The calibrating examples that have the f32 model's answers. */
static struct krn_answers ranked(const struct krn_quantise *j)
{
    struct krn_answers some = j->learned; /* the same arrays */

    some.count = base_min(some.count, (size_t)KRN_RANKED_EXAMPLES);
    return some;
}

/* The calibration by one way; *ret_square: how far its answers are from f32's. */
static int try_way(struct krn_quantise *j, enum krn_calibrate_method method, bool equalised,
                   double *ret_square)
{
    struct krn_answers some = ranked(j);
    struct krn_judgement of;
    int r =
        krn_calibrate_finish(j->ranges, method, j->o->symmetric, &j->q.zeros, &j->q.calibration);

    if (r < 0) {
        return r;
    }
    j->q.calibration->equalised = equalised;
    r = krn_quantise_judge(j, &some, &of);
    *ret_square = of.square;
    return r;
}

/* The best of the ways that are wanted: by extremes, the same with channels equalised, and by
 * divergence. Equalising has to pay, since it leaves less room to what was not seen. */
static int find_ranges(struct krn_quantise *j)
{
    static const struct {
        enum krn_calibrate_method method;
        bool equalised;
        double worth;
    } ways[] = {{KRN_CALIBRATE_MINMAX, false, 1},
                {KRN_CALIBRATE_KL, false, 1},
                {KRN_CALIBRATE_MINMAX, true, EQUALISED_WORTH}};
    double least = 0, square;
    size_t best = 0;
    bool any = false;
    int r = 0;

    static_assert(base_array_count(ways) == KRN_QUANTISE_WAYS, "each has its place");
    for (size_t i = 0; r == 0 && i < KRN_QUANTISE_WAYS; i++) {
        if (!j->o->either && ways[i].method != j->o->method) {
            continue;
        }
        r = try_way(j, ways[i].method, ways[i].equalised, &square);
        j->ways[i].calibration = base_take(j->q.calibration);
        j->ways[i].method = ways[i].method;
        if (r == 0 && (!any || square < ways[i].worth * least)) {
            least = square;
            best = i;
            any = true;
        }
    }
    j->q.calibration = r == 0 ? base_take(j->ways[best].calibration) : NULL;
    j->q.method = ways[best].method;
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

/* ---- speed ---- */

/* The model by calibration @c (NULL: f32) on every kind of core. */
static int measure(struct krn_quantise *j, const struct mdl_calibration *c, struct timed *ret)
{
    struct mdl_load_options load = j->load;
    int r;

    load.calibration = c;
    r = mdl_load(j->path, &load, j->error, &ret->m);
    ret->op_ns = r == 0 ? calloc(ret->m->op_count + 1, sizeof(*ret->op_ns)) : NULL;
    r = r == 0 && !ret->op_ns ? no_memory(j) : r;
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

/* Keeps f32 what is slower on integers, if the whole gets faster by it. @whole: measured anew then.
 */
static int keep_slower(struct krn_quantise *j, const struct timed *real, struct timed *whole)
{
    size_t before = j->q.calibration->keep_count, at;
    struct timed mixed = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < whole->m->op_count; i++) {
        const struct mdl_op *op = &whole->m->ops[i];

        if (op->quant && find_op(real->m, op->name, &at) && whole->op_ns[i] > real->op_ns[at]) {
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

/* What each operator saves; a twentieth of its time at least, since times are noisy. */
static void find_saved(struct krn_quantise *j, const struct timed *real, const struct timed *whole)
{
    size_t at;

    for (size_t i = 0; i < whole->m->op_count; i++) {
        if (whole->m->ops[i].quant && find_op(j->m, whole->m->ops[i].name, &at)) {
            j->saved[at] = base_max(real->op_ns[at] - whole->op_ns[i], 0.05 * real->op_ns[at]);
        }
    }
}

static int choose_by_speed(struct krn_quantise *j)
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
static int measure_again(struct krn_quantise *j)
{
    struct timed whole = {0};
    int r = measure(j, j->q.calibration, &whole);

    j->q.int8_ns = whole.ns / (double)j->o->cpu_count;
    timed_deinit(&whole);
    return r;
}

/* ---- the whole ---- */

/* Operators with an integer form, and those that run on integers by the calibration. */
static int count_integers(struct krn_quantise *j)
{
    struct mdl_calibration *c = j->q.calibration;
    struct mdl_load_options load = j->load;
    size_t kept = c->keep_count, *counts[2] = {&j->q.integers, &j->q.products};
    int r = 0;

    load.calibration = c;
    for (size_t way = 0; r == 0 && way < 2; way++) {
        struct mdl_model *m = NULL;

        c->keep_count = way == 0 ? kept : 0;
        r = mdl_load(j->path, &load, j->error, &m);
        c->keep_count = kept;
        for (size_t i = 0; r == 0 && i < m->op_count; i++) {
            *counts[way] += m->ops[i].quant != NULL;
        }
        mdl_free(m);
    }
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
        j->saved[i] = 1; /* until it is measured */
    }
    r = j->input && j->saved ? learn(j) : no_memory(j);
    r = r < 0 ? r : find_judges(j);
    some = ranked(j);
    r = r < 0 ? r : answer(j, &some);
    r = r < 0 ? r : find_ranges(j);
    r = r < 0 ? r : keep_asked(j);
    return r < 0 ? r : answer(j, &j->judged);
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
    r = r == 0 && timed ? choose_by_speed(j) : r;
    kept = j->q.calibration->keep_count;
    r = r < 0 ? r : krn_quantise_bound(j, &of);
    j->q.agreement = (double)of.same / (double)j->judged.count;
    j->q.error_mean = of.sum / (double)j->judged.count;
    j->q.error_most = of.most;
    if (r == 0 && timed && j->q.calibration->keep_count > kept) {
        r = measure_again(j);
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
