/* SPDX-License-Identifier: Apache-2.0 */
/* The calibrating and the judging examples, the f32 model's answers to them, and the way to find
 * ranges with the smallest error. */
#include <assert.h>

#include "base/base.h"
#include "base/leaves/how_far.h"
#include "kernels/int8cal/quantise_private.h"

#define EQUALISED_WORTH 0.8                   /* of the mean square error */
#define ANSWERS_BYTES_MAX ((size_t)512 << 20) /* limit of the stored f32 answers */

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

int krn_quantise_learn(struct krn_quantise *j)
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
int krn_quantise_find_judges(struct krn_quantise *j)
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

int krn_quantise_answer(struct krn_quantise *j, struct krn_answers *a)
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

struct krn_answers krn_quantise_ranked(const struct krn_quantise *j)
{
    struct krn_answers some = j->learned; /* the same arrays */

    some.count = base_min(some.count, (size_t)KRN_RANKED_EXAMPLES);
    return some;
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

int krn_quantise_ranges(struct krn_quantise *j)
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
