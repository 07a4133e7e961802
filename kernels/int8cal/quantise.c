/* SPDX-License-Identifier: Apache-2.0 */
/* The calibrating and the judging examples, the f32 model's answers to them, the way to find ranges
 * with the smallest error, and whether all that is worth serving. */
#include <assert.h>

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/int8cal/quantise_private.h"

#define EQUALISED_WORTH 0.8                   /* of the mean square error */
#define ANSWERS_BYTES_MAX ((size_t)512 << 20) /* limit of the stored f32 answers */

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
    krn_precisions_free(q->front, q->front_count);
    q->front = NULL;
    q->front_count = 0;
}

const char *krn_kept_why_name(enum krn_kept_why why)
{
    static const char *const names[] = {[KRN_KEPT_ASKED] = "asked",
                                        [KRN_KEPT_SLOWER] = "slower",
                                        [KRN_KEPT_ACCURACY] = "accuracy",
                                        [KRN_KEPT_FRONT] = "front"};

    return names[why];
}

static bool calibrates(const struct krn_quantise *j, size_t i)
{
    return i / base_max(j->o->group, (size_t)1) % 2 == 0;
}

/* Moves the examples for ranking to the front, spread over all, since neighbours may be alike. */
static void spread(struct krn_answers *a)
{
    for (size_t k = 0; k < KRN_RANKED_EXAMPLES && a->count > KRN_RANKED_EXAMPLES; k++) {
        size_t at = k * a->count / KRN_RANKED_EXAMPLES, other = a->example[at];

        a->example[at] = a->example[k];
        a->example[k] = other;
    }
}

/* Runs the calibrating examples; those that cause NaN or infinity in the model are ignored. */
static int learn(struct krn_quantise *j)
{
    enum krn_calibrate_method method = j->o->either ? KRN_CALIBRATE_KL : j->o->method;
    char why[MDL_ERROR_MAX];
    int r = krn_calibrate_new(j->m, method, j->error, &j->ranges);

    j->learned.example = calloc(j->e->count, sizeof(size_t));
    j->learned.of = calloc(j->e->count, sizeof(*j->learned.of));
    r = r == 0 && (!j->learned.example || !j->learned.of) ? krn_quantise_no_memory(j) : r;
    for (size_t i = 0; r == 0 && i < j->e->count; i++) {
        mdl_progress("calibrating by examples", i, j->e->count);
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
        return krn_quantise_no_memory(j);
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

/* Computes the f32 model's answers to @a. */
static int answer(struct krn_quantise *j, struct krn_answers *a)
{
    size_t bytes = j->m->outputs[0].bytes;
    int r = 0;

    for (size_t i = 0; r == 0 && i < a->count; i++) {
        a->of[i] = malloc(base_max(bytes, (size_t)1));
        r = !a->of[i] ? krn_quantise_no_memory(j)
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

/* Makes the calibration by one way; *ret_square: squared error of its answers against f32. */
static int try_way(struct krn_quantise *j, enum krn_calibrate_method method, bool equalised,
                   double *ret_square)
{
    struct krn_answers some = krn_quantise_ranked(j);
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

/* Picks the best of the requested ways: by extremes, by extremes with channels equalised, by
 * divergence. Equalising must be clearly better, since it leaves less room for unseen values. */
static int ranges(struct krn_quantise *j)
{
    static const struct {
        enum krn_calibrate_method method;
        bool equalised;
        double worth;
    } ways[] = {{KRN_CALIBRATE_MINMAX, false, 1},
                {KRN_CALIBRATE_KL, false, 1},
                {KRN_CALIBRATE_MINMAX, true, EQUALISED_WORTH}};
    double least = 0, square;
    size_t best = 0, done = 0, count = 0;
    bool any = false;
    int r = 0;

    for (size_t i = 0; i < KRN_QUANTISE_WAYS; i++) {
        count += j->o->either || ways[i].method == j->o->method;
    }
    static_assert(base_array_count(ways) == KRN_QUANTISE_WAYS, "each has its place");
    for (size_t i = 0; r == 0 && i < KRN_QUANTISE_WAYS; i++) {
        if (!j->o->either && ways[i].method != j->o->method) {
            continue;
        }
        krn_quantise_pass(j, "comparing ranges by examples", done++, count);
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

static int keep_asked(struct krn_quantise *j)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < j->o->keep_count; i++) {
        if (krn_quantise_find_op(j->m, j->o->keep[i]) == MDL_NONE) {
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
    r = j->input && j->saved ? learn(j) : krn_quantise_no_memory(j);
    r = r < 0 ? r : find_judges(j);
    some = krn_quantise_ranked(j);
    r = r < 0 ? r : answer(j, &some);
    r = r < 0 ? r : ranges(j);
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
    if (r == KRN_QUANTISE_E_USELESS) { /* the answer is f32 */
        j.q.integers = 0;
        j.q.f32_work = 1;
    }
    r = r < 0 || o->front_max == 0 ? r : krn_quantise_front(&j);
    j.q.took_ns = base_now_ns() - start;
    if (r != 0) {
        krn_quantised_deinit(&j.q);
    }
    if (r >= 0) {
        *ret = j.q;
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
