/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the primitives for each kind of cores, and chooses by all times that are known. */

#include "base/base.h"
#include "daemon/models/choosing_private.h"
#include "daemon/models/core_time.h"

#define LIMIT_TIMES 5u /* of kernels.measure_ms, for frames that take seconds */
#define SPARE_TIMES 4u /* of kernels.measure_ms, in spare time: no start waits for it */

static uint64_t stolen_ns(void *arg)
{
    const struct dmn_choose_kind *kind = arg;
    struct dmn_core_time t;

    return dmn_core_time_read(kind->cpu, &t) == 0 ? t.stolen_ns : 0;
}

/* Does it only measure what is unsure of known times? */
static bool knows(const struct dmn_choose *c, size_t k)
{
    return c->again && c->known[k].count > 0;
}

uint64_t dmn_choose_budget_ns(const struct dmn_choose *c, size_t kind)
{
    return (knows(c, kind) ? SPARE_TIMES : 1) * c->ms * BASE_NS_PER_MS;
}

/* Sets @ret for the operators of kind @k that the known times leave in doubt. Return: how many;
 * negative errno. */
static int unsure_ops(const struct dmn_choose *c, size_t k, bool *ret)
{
    struct krn_chosen chosen;
    size_t count;
    int r = krn_choose(&c->known[k], &c->options, &chosen);

    if (r < 0) {
        return r;
    }
    count = krn_chosen_unsure(&chosen, DMN_CHOOSE_DOUBT / 2, ret);
    krn_chosen_deinit(&chosen);
    return (int)count;
}

/* Adds times of kind @k to those that are known. @disturbed: grows to the share left out. */
static int time_kind(struct dmn_choose *c, const struct mdl_model *m, size_t k, double *disturbed)
{
    struct krn_watch_clocks clocks = {.arg = &c->kinds[k], .stolen_ns = stolen_ns};
    base_autofree bool *wanted = calloc(m->op_count + 1, sizeof(*wanted));
    bool again = knows(c, k);
    struct krn_measure_options o = {.cpu = c->kinds[k].cpu,
                                    .budget_ns = dmn_choose_budget_ns(c, k),
                                    .limit_ns = LIMIT_TIMES * c->ms * BASE_NS_PER_MS,
                                    .inexact = !c->options.exact,
                                    .stop = &c->stop,
                                    .clocks = &clocks,
                                    .known = again ? &c->known[k] : NULL,
                                    .wanted = wanted};
    struct krn_times times = KRN_TIMES_NULL;
    int r = wanted ? 0 : -ENOMEM;

    if (r == 0 && again) {
        r = unsure_ops(c, k, wanted);
        if (r <= 0) {
            return r; /* this kind's is sure */
        }
    }
    r = r < 0 ? r : krn_measure(m, &o, &times);
    if (r < 0) {
        return r;
    }
    *disturbed = base_max(*disturbed, krn_times_disturbed(&times));
    if (!again) {
        krn_times_deinit(&c->known[k]);
        c->known[k] = times;
        return 0;
    }
    r = krn_times_join(&c->known[k], &times);
    krn_times_deinit(&times);
    return r;
}

/* Takes what serves now if the choice is not better for sure. */
static int stay(struct dmn_choose *c, size_t k)
{
    struct krn_chosen *best = &c->of[k], now;
    int r = krn_choose_by(&c->known[k], &c->now[k], &now);

    if (r != 0) {
        return r < 0 ? r : 0;
    }
    if (!krn_chosen_beats(best, &now)) {
        double *lose = now.op_lose_ns;

        now.op_lose_ns = best->op_lose_ns;
        best->op_lose_ns = lose;
        memcpy(now.choice.own, c->now[k].own, now.choice.op_count * sizeof(*now.choice.own));
        krn_chosen_deinit(best);
        *best = now;
        return 0;
    }
    krn_chosen_deinit(&now);
    return 0;
}

int dmn_choose_measure(struct dmn_choose *c, const struct mdl_model *m)
{
    double disturbed = 0, doubt = 0;
    int r = 0;

    for (size_t k = 0; r == 0 && k < c->kind_count; k++) {
        if (c->kinds[k].same != k) {
            continue;
        }
        r = time_kind(c, m, k, &disturbed);
        if (r == 0) {
            krn_chosen_deinit(&c->of[k]);
            r = c->examples ? dmn_choose_agree(c, m, &c->known[k], &c->of[k])
                            : krn_choose(&c->known[k], &c->options, &c->of[k]);
        }
        if (r == 0 && c->now[k].op_count == m->op_count) {
            r = stay(c, k);
        }
        if (r == 0 && c->wants_front && k == 0) {
            r = krn_choose_front(&c->known[k], &c->options, DMN_CHOOSE_FRONT_MAX, c->front,
                                 &c->front_count);
        }
        doubt = base_max(doubt, r == 0 ? krn_chosen_doubt(&c->of[k]) : 0);
    }
    c->doubt = doubt > DMN_CHOOSE_DOUBT ? doubt : 0;
    c->tries.all += c->again;
    c->tries.calm += c->again && disturbed < KRN_MEASURE_RESTLESS;
    return r;
}
