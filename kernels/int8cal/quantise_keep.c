/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the operators that stay f32 for accuracy. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "kernels/int8cal/quantise_private.h"

#define ONE_BY_ONE 8u

struct candidate {
    const char *name; /* of the f32 model's operator */
    double saved;     /* ns, by integers */
    double cost;      /* loss of accuracy per ns saved */
};

static int dearest_first(const void *a, const void *b)
{
    double x = ((const struct candidate *)a)->cost, y = ((const struct candidate *)b)->cost;

    return (x < y) - (x > y);
}

/* The operators that run on integers now. Return: count, -errno. */
static int find_candidates(struct krn_quantise *j, struct candidate *ret, size_t *ret_count)
{
    struct mdl_load_options load = j->load;
    struct mdl_model *whole = NULL;
    int r;

    load.calibration = j->q.calibration;
    r = mdl_load(j->path, &load, j->error, &whole);
    *ret_count = 0;
    for (size_t i = 0; r == 0 && i < j->m->op_count; i++) {
        for (size_t k = 0; k < whole->op_count; k++) {
            if (whole->ops[k].quant && strcmp(whole->ops[k].name, j->m->ops[i].name) == 0) {
                ret[(*ret_count)++] =
                    (struct candidate){.name = j->m->ops[i].name, .saved = j->saved[i]};
                break;
            }
        }
    }
    mdl_free(whole);
    return r;
}

/* Finds the cost of every candidate by quantising it alone. */
static int find_costs(struct krn_quantise *j, struct candidate *all, size_t count)
{
    size_t before = j->q.calibration->keep_count;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        struct krn_answers some = j->learned;
        struct krn_judgement of;

        some.count = base_min(some.count, (size_t)KRN_RANKED_EXAMPLES);
        for (size_t k = 0; r == 0 && k < count; k++) {
            r = k == i ? 0 : krn_quantise_add_keep(j, all[k].name, KRN_KEPT_ACCURACY);
        }
        r = r < 0 ? r : krn_quantise_judge(j, &some, &of);
        krn_quantise_cut_keep(j, before);
        all[i].cost = r == 0 ? of.square / all[i].saved : 0;
    }
    return r;
}

static int judge_without(struct krn_quantise *j, const struct candidate *all, size_t first,
                         size_t count, struct krn_judgement *ret)
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

/* Finds the fewest of the most expensive operators that must stay f32. Tries every count up to
 * ONE_BY_ONE, then bisects. Agreement need not grow with every operator, so the count found is
 * enough, but not always the smallest. */
static int find_fewest(struct krn_quantise *j, const struct candidate *all, size_t count,
                       struct krn_judgement *judgement)
{
    size_t first = j->q.calibration->keep_count, few = 0, many = count;
    struct krn_judgement of;
    int r = 0;

    while (r == 0 && many - few > 1) {
        size_t middle = few < ONE_BY_ONE ? few + 1 : few + (many - few) / 2;

        r = judge_without(j, all, first, middle, &of);
        *(r == 0 && holds(j, &of) ? &many : &few) = middle;
    }
    if (r == 0 && many == count) {
        snprintf(j->error, MDL_ERROR_MAX,
                 "within the bound of %.2f %% agreement no operator can be quantised",
                 100 * j->o->agreement_min);
        return KRN_QUANTISE_E_USELESS;
    }
    return r < 0 ? r : judge_without(j, all, first, many, judgement);
}

/* Tries all ways and takes the first that meets the bound. *@ret: the judgement of the way
 * taken. */
static int find_way(struct krn_quantise *j, bool *ret_holds, struct krn_judgement *ret)
{
    struct krn_judgement best, of;
    int r = krn_quantise_judge(j, &j->judged, &best);

    *ret_holds = r == 0 && holds(j, &best);
    for (size_t i = 0; r == 0 && !*ret_holds && i < KRN_QUANTISE_WAYS; i++) {
        if (!krn_quantise_take(j, i)) {
            continue;
        }
        r = krn_quantise_judge(j, &j->judged, &of);
        *ret_holds = r == 0 && holds(j, &of);
        if (*ret_holds) {
            best = of;
        } else {
            krn_quantise_take(j, i); /* back */
        }
    }
    *ret = best;
    return r;
}

int krn_quantise_bound(struct krn_quantise *j, struct krn_judgement *judgement)
{
    base_autofree struct candidate *all = calloc(j->m->op_count + 1, sizeof(*all));
    size_t count = 0;
    bool good = false;
    int r = all ? find_way(j, &good, judgement) : -ENOMEM;

    if (r < 0 || good) {
        return r;
    }
    r = find_candidates(j, all, &count);
    r = r < 0 ? r : find_costs(j, all, count);
    if (r < 0) {
        return r;
    }
    qsort(all, count, sizeof(*all), dearest_first);
    return find_fewest(j, all, count, judgement);
}
