/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the primitives for each kind of cores, and chooses by all times that are known, and by
 * examples if rounding is traded for time; then what several frames at once gain. */
#include "base/base.h"
#include "daemon/machine/cgroup_limits.h"
#include "daemon/models/choosing_private.h"
#include "daemon/models/process_memory.h"
#include "kernels/int8cal/runner.h"

#define LIMIT_TIMES 5u   /* of kernels.measure_ms, for frames that take seconds */
#define SPARE_TIMES 4u   /* of kernels.measure_ms, in spare time: no start waits for it */
#define AT_ONCE_SHARE 4u /* of kernels.measure_ms, for frames at once: one part in so many */
#define FREE_PART 2u     /* of what is free, one part in so many for weights to compare */

/* ---- what cores did ---- */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

int dmn_core_time_read(int cpu, struct dmn_core_time *ret)
{
    base_cleanup(dmn_file_close) FILE *f = fopen("/proc/stat", "re");
    char line[512], name[24] = "cpu ";
    unsigned long long t[COLUMNS];
    int error = -ENOENT;

    if (cpu >= 0) {
        snprintf(name, sizeof(name), "cpu%d ", cpu);
    }
    while (f && error && fgets(line, sizeof(line), f) && strncmp(line, "cpu", 3) == 0) {
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), "%llu %llu %llu %llu %llu %llu %llu %llu", &t[USER],
                   &t[NICE], &t[SYSTEM], &t[IDLE], &t[IOWAIT], &t[IRQ], &t[SOFTIRQ],
                   &t[STEAL]) == COLUMNS) {
            uint64_t tick_ns = BASE_NS_PER_S / (uint64_t)base_max(sysconf(_SC_CLK_TCK), 1L);

            ret->stolen_ns = t[STEAL] * tick_ns;
            ret->busy_ns =
                (t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ] + t[STEAL]) * tick_ns;
            error = 0;
        }
    }
    return error;
}

static uint64_t stolen_ns(void *arg)
{
    const struct dmn_choose_kind *kind = arg;
    struct dmn_core_time t;

    return dmn_core_time_read(kind->cpu, &t) == 0 ? t.stolen_ns : 0;
}

/* ---- times, and the choice ---- */

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

/* Drops examples that are not inputs of the model. */
static int fit(struct dmn_choose *c, const struct mdl_model *m)
{
    char error[MDL_ERROR_MAX];
    int r = krn_examples_fit(c->examples, m, error);

    if (r < 0) {
        snprintf(c->note, sizeof(c->note), "%s", error);
    } else if (c->examples->left_out) {
        snprintf(c->note, sizeof(c->note), "%zu examples skipped; %.900s", c->examples->left_out,
                 c->examples->note);
    }
    return r;
}

/* A bound on accuracy: finds the fastest choice whose classes agree with the exact choice's on at
 * least c->agreement_min of c->examples; inexact primitives are allowed. Sets c->agreement to the
 * measured share. Return: 0; negative, with c->note, if the examples are unusable. */
static int agree(struct dmn_choose *c, const struct mdl_model *m, const struct krn_times *t,
                 struct krn_chosen *ret)
{
    struct krn_choose_options o = c->options;
    struct krn_chosen exact = KRN_CHOSEN_NULL, front[DMN_CHOOSE_FRONT_MAX];
    size_t count = 0;
    bool found = false;
    int r = fit(c, m);

    o.exact = true;
    r = r < 0 ? r : krn_choose(t, &o, &exact);
    o.exact = false;
    o.front_inexact = true;
    r = r < 0 ? r : krn_choose_front(t, &o, DMN_CHOOSE_FRONT_MAX, front, &count);
    for (size_t i = 0; i < count; i++) {
        double agreement = 0;

        if (r == 0 && !found) {
            r = krn_agreement(m, &exact.choice, &front[i].choice, c->examples, &agreement);
        }
        if (r == 0 && !found && agreement >= c->agreement_min) {
            found = true;
            c->agreement = agreement;
            *ret = front[i];
        } else {
            krn_chosen_deinit(&front[i]);
        }
    }
    if (r == 0 && !found) { /* not even those with the fewest inexact primitives agree */
        c->agreement = 1;
        *ret = exact;
    } else {
        krn_chosen_deinit(&exact);
    }
    return r;
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
            r = c->examples ? agree(c, m, &c->known[k], &c->of[k])
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

/* ---- several frames at once ---- */

/* Times by which another primitive may be chosen: not if memory or examples decided, too. */
static const struct krn_times *times_of(const struct dmn_choose *c, size_t k)
{
    return c->measured && !c->examples && c->options.objective == KRN_LATENCY &&
                   c->options.packed_bytes_max == 0
               ? &c->known[k]
               : NULL;
}

bool dmn_choose_at_once(struct dmn_choose *c, const struct mdl_model *m)
{
    bool any = false;

    for (size_t k = 0; k < c->kind_count && c->ms > 0; k++) {
        struct krn_at_once_options o = {
            .cpu = c->kinds[k].cpu,
            .budget_ns = c->ms * BASE_NS_PER_MS / AT_ONCE_SHARE,
            .stop = &c->stop,
            .packed_max = dmn_memory_free() / FREE_PART,
        };
        double(*gains)[KRN_AT_ONCE];

        if (c->kinds[k].same != k || c->at_once[k] ||
            (!c->measured && !krn_at_once_any(m, &c->of[k].choice))) {
            continue;
        }
        gains = calloc(m->op_count + 1, sizeof(*gains));
        if (!gains || krn_measure_at_once(m, times_of(c, k), &o, &c->of[k], gains) < 0) {
            free(gains); /* the planner proposes no batches */
            continue;
        }
        c->at_once[k] = gains;
        any = true;
    }
    return any;
}
