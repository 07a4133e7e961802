/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the operators that stay f32: for speed, and for accuracy. */

#include "base/base.h"
#include "kernels/int8cal/quantise_private.h"
#include "kernels/select/choose.h"

/* ---- slower on integers ---- */

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

size_t krn_quantise_find_op(const struct mdl_model *m, const char *name)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (strcmp(m->ops[i].name, name) == 0) {
            return i;
        }
    }
    return MDL_NONE;
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
        struct krn_measure_options o = {.budget_ns = j->o->measure_ns};
        struct krn_choose_options choose = {.exact = true};
        struct krn_chosen best = KRN_CHOSEN_NULL;
        struct krn_times times = KRN_TIMES_NULL;

        r = krn_quantise_measure(j, ret->m, k, o, &times);
        r = r < 0 ? r : krn_choose(&times, &choose, &best);
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
    size_t before = j->q.calibration->keep_count;
    struct timed mixed = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < whole->m->op_count; i++) {
        const struct mdl_op *op = &whole->m->ops[i];
        size_t at = op->quant ? krn_quantise_find_op(real->m, op->name) : MDL_NONE;

        if (at != MDL_NONE && whole->op_ns[i] > real->op_ns[at]) {
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
    for (size_t i = 0; i < whole->m->op_count; i++) {
        const struct mdl_op *op = &whole->m->ops[i];
        size_t at = op->quant ? krn_quantise_find_op(j->m, op->name) : MDL_NONE;

        if (at != MDL_NONE) {
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

/* ---- what costs accuracy ---- */

#define ONE_BY_ONE 8u
#define SURELY_WORK 0.25 /* most work that stays f32 for the sake of other examples */

static int dearest_first(const void *a, const void *b)
{
    double x = ((const struct krn_quantise_candidate *)a)->cost,
           y = ((const struct krn_quantise_candidate *)b)->cost;

    return (x < y) - (x > y);
}

int krn_quantise_candidates(struct krn_quantise *j, size_t kept, struct krn_quantise_candidate *ret,
                            size_t *ret_count)
{
    struct mdl_load_options load = j->load;
    struct mdl_model *whole = NULL;
    size_t now = j->q.calibration->keep_count;
    int r;

    load.calibration = j->q.calibration;
    j->q.calibration->keep_count = kept;
    r = mdl_load(j->path, &load, j->error, &whole);
    j->q.calibration->keep_count = now;
    *ret_count = 0;
    for (size_t i = 0; r == 0 && i < j->m->op_count; i++) {
        for (size_t k = 0; k < whole->op_count; k++) {
            if (whole->ops[k].quant && strcmp(whole->ops[k].name, j->m->ops[i].name) == 0) {
                ret[(*ret_count)++] =
                    (struct krn_quantise_candidate){.name = j->m->ops[i].name,
                                                    .op = i,
                                                    .saved = j->saved[i],
                                                    .work = krn_quantise_work(j->m, &j->m->ops[i])};
                break;
            }
        }
    }
    mdl_free(whole);
    return r;
}

int krn_quantise_costs(struct krn_quantise *j, const char *what, struct krn_quantise_candidate *all,
                       size_t count)
{
    size_t before = j->q.calibration->keep_count;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct krn_answers some = krn_quantise_ranked(j);
        struct krn_judgement of;

        for (size_t k = 0; r == 0 && k < count; k++) {
            r = k == i ? 0 : krn_quantise_add_keep(j, all[k].name, KRN_KEPT_ACCURACY);
        }
        krn_quantise_pass(j, what, i, count);
        r = r < 0 ? r : krn_quantise_judge(j, &some, &of);
        krn_quantise_cut_keep(j, before);
        all[i].square = r == 0 ? of.square : 0;
    }
    return r;
}

static int judge_without(struct krn_quantise *j, const struct krn_quantise_candidate *all,
                         size_t first, size_t count, struct krn_judgement *ret)
{
    int r = 0;

    krn_quantise_cut_keep(j, first);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = krn_quantise_add_keep(j, all[i].name, KRN_KEPT_ACCURACY);
    }
    return r < 0 ? r : krn_quantise_judge(j, &j->judged, ret);
}

static bool holds(const struct krn_quantise *j, const struct krn_judgement *of)
{
    return (double)of->same >= j->o->agreement_min * (double)j->judged.count - 1e-9;
}

/* Examples of the same class may be luck; this expects the same of others. */
static bool holds_surely(const struct krn_quantise *j, const struct krn_judgement *of)
{
    return holds(j, of) && of->expected >= j->o->agreement_min - 1e-9;
}

/* What holds, though perhaps by luck: a way, or a count of operators that stay f32. */
struct lucky {
    size_t way;      /* as krn_quantise_take() counts; KRN_QUANTISE_WAYS: the present one */
    size_t kept;     /* 0: the way */
    double expected; /* 0: nothing holds */
};

/* Tries all ways, the present one first, and takes the first that holds surely. *ret: the judgement
 * of the way taken. *ret_lucky: if none does, the one that holds with the most expected. */
static int find_way(struct krn_quantise *j, struct lucky *ret_lucky, bool *ret_surely,
                    struct krn_judgement *ret)
{
    struct krn_judgement of;
    int r;

    krn_quantise_pass(j, "judging integers by examples", 0, 1);
    r = krn_quantise_judge(j, &j->judged, ret);
    *ret_surely = r == 0 && holds_surely(j, ret);
    *ret_lucky = (struct lucky){.way = KRN_QUANTISE_WAYS,
                                .expected = r == 0 && holds(j, ret) ? ret->expected : 0};
    for (size_t i = 0; r == 0 && !*ret_surely && i < KRN_QUANTISE_WAYS; i++) {
        if (!krn_quantise_take(j, i)) {
            continue;
        }
        krn_quantise_pass(j, "judging other ranges by examples", i, KRN_QUANTISE_WAYS);
        r = krn_quantise_judge(j, &j->judged, &of);
        *ret_surely = r == 0 && holds_surely(j, &of);
        if (*ret_surely) {
            *ret = of;
            break;
        }
        if (r == 0 && holds(j, &of) && of.expected > ret_lucky->expected) {
            *ret_lucky = (struct lucky){.way = i, .expected = of.expected};
        }
        krn_quantise_take(j, i); /* back */
    }
    return r;
}

/* Share of the candidates' work that the first @n have. */
static double work_of(const struct krn_quantise_candidate *all, size_t n, size_t count)
{
    double sum = 0, whole = 0;

    for (size_t i = 0; i < count; i++) {
        sum += i < n ? all[i].work : 0;
        whole += all[i].work;
    }
    return sum / whole;
}

/* Finds the fewest of the most expensive operators that must stay f32. Tries every count up to
 * ONE_BY_ONE, then steps of an eighth: agreement need not grow with every operator, so bisecting
 * could miss a small count that is enough. @little: tries counts that leave little work in f32, and
 * looks for one that holds surely; if there is none, takes the one that holds with the most
 * expected. Else tries the larger counts, and takes the first that holds.
 * @what: for krn_quantise_pass(). *best: in: what else holds; out: the count, if that is better. */
static int find_fewest(struct krn_quantise *j, const struct krn_quantise_candidate *all,
                       size_t count, bool little, const char *what, struct lucky *best)
{
    size_t first = j->q.calibration->keep_count;
    struct krn_judgement of;

    for (size_t n = 1; n < count; n += base_max(n / ONE_BY_ONE, (size_t)1)) {
        int r = 0;

        if ((work_of(all, n, count) <= SURELY_WORK) != little) {
            continue;
        }
        krn_quantise_pass(j, what, n, count);
        r = judge_without(j, all, first, n, &of);
        krn_quantise_cut_keep(j, first);
        if (r < 0) {
            return r;
        }
        if (holds(j, &of) && of.expected > best->expected) {
            *best = (struct lucky){.kept = n, .expected = of.expected};
            if (!little || holds_surely(j, &of)) {
                break;
            }
        }
    }
    return 0;
}

/* Puts the most expensive operators first: per work, or per ns saved. */
static void order(struct krn_quantise_candidate *all, size_t count, bool by_work)
{
    for (size_t i = 0; i < count; i++) {
        all[i].cost = all[i].square / (by_work ? all[i].work : all[i].saved);
    }
    qsort(all, count, sizeof(*all), dearest_first);
}

/* Finds what must stay f32, and makes it so. Times of small operators are noisy, and the fewest by
 * time can be much of the work; so if little work is not enough by time, it is tried by work. */
static int keep_fewest(struct krn_quantise *j, struct krn_quantise_candidate *all, size_t count,
                       struct lucky best, struct krn_judgement *ret)
{
    size_t first = j->q.calibration->keep_count;
    bool timed = j->o->measure_ns && j->o->cpu_count;
    int r = 0;

    for (int by_work = !timed; r == 0 && by_work < 2 && best.kept == 0; by_work++) {
        order(all, count, by_work);
        r = find_fewest(j, all, count, true,
                        by_work ? "leaving few operators in f32, by their work"
                                : "leaving few operators in f32, by their time",
                        &best);
    }
    if (r == 0 && best.expected == 0) {
        order(all, count, !timed);
        r = find_fewest(j, all, count, false, "leaving more operators in f32", &best);
    }
    krn_quantise_pass(j, "judging the choice by examples", 0, 1);
    if (r < 0 || best.kept > 0) {
        return r < 0 ? r : judge_without(j, all, first, best.kept, ret);
    }
    if (best.expected > 0) {
        if (best.way < KRN_QUANTISE_WAYS) {
            krn_quantise_take(j, best.way);
        }
        return krn_quantise_judge(j, &j->judged, ret);
    }
    snprintf(j->error, MDL_ERROR_MAX,
             "within the bound of %.2f %% agreement no operator can be quantised",
             100 * j->o->agreement_min);
    return KRN_QUANTISE_E_USELESS;
}

int krn_quantise_bound(struct krn_quantise *j, struct krn_judgement *judgement)
{
    base_autofree struct krn_quantise_candidate *all = calloc(j->m->op_count + 1, sizeof(*all));
    struct lucky best = {0};
    size_t count = 0;
    bool surely = false;
    int r = all ? find_way(j, &best, &surely, judgement) : krn_quantise_no_memory(j);

    if (r < 0 || surely) {
        return r;
    }
    r = krn_quantise_candidates(j, j->q.calibration->keep_count, all, &count);
    r = r < 0 ? r : krn_quantise_costs(j, "finding operators that cost accuracy", all, count);
    return r < 0 ? r : keep_fewest(j, all, count, best, judgement);
}
