/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/decide.h"

#include "base/base.h"
#include "tuner/eval.h"
#include "tuner/solve/solve.h"

/* The fastest plan instead of the one of lower latency within the slack: where that gains too
 * little and the fastest this much of gain_min. */
#define FASTEST 1.5
#define UNCERTAINTY 1.0 /* standard errors by which levels may be off without losing the gain */

const char *const tun_hold_names[TUN_HOLD_COUNT] = {"none",   "same",   "gain", "cooldown",
                                                    "budget", "bounds", "lost", "together"};

/* Names the plan's EPs anew: @to, by EP. */
static void rename_eps(struct pl_plan *plan, const size_t *to)
{
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            pl_group_rename(&plan->stages[s].groups[g], to);
        }
    }
}

static void from_record_eps(const struct tun_decision *d, struct pl_plan *plan)
{
    size_t to[PL_EP_MAX] = {0};

    for (size_t k = 0; k < d->corrected.ep_count; k++) {
        to[d->eps_left[k]] = k;
    }
    rename_eps(plan, to);
}

/* The serving plan with the corrected problem's EPs. Return: do the cores suffice. */
static bool serving_plan(const struct tun_record *r, const struct tun_decision *d,
                         struct pl_plan *ret)
{
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        uint16_t cores = r->eps[k].cores;

        if (cores < r->problem.eps[k].cores && pl_plan_cores(&r->plan, k) > cores) {
            return false;
        }
    }
    *ret = r->plan;
    from_record_eps(d, ret);
    return true;
}

/* A plan that keeps the bounds gains at least @least over one that does not. */
static double gain_of(const struct tun_problem *p, const struct tun_outcome *before,
                      const struct tun_outcome *after, double least)
{
    if (tun_keeps(p, before) == tun_keeps(p, after)) {
        return tun_keeps(p, after) ? tun_figure(p, before) / tun_figure(p, after) - 1
                                   : before->bottleneck_ns / after->bottleneck_ns - 1;
    }
    return tun_keeps(p, after) ? base_max(least, before->bottleneck_ns / after->bottleneck_ns - 1)
                               : -1;
}

static bool all_free(const struct tun_record *r, const struct tun_decision *d)
{
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        if (tun_most_slowed(r, d->slow, k) > 0) {
            return false;
        }
    }
    return d->released && d->corrected.ep_count == r->problem.ep_count;
}

/* Takes the home plan if nothing is slowed any more. Return: it did. */
static bool home(const struct tun_record *r, const struct tun_decision *d,
                 struct tun_solution *found)
{
    struct tun_outcome o;

    if (r->home.stage_count == 0 || !all_free(r, d) || !tun_fits(&d->corrected, &r->home) ||
        tun_eval(&d->corrected, &r->home, &o) != 0 ||
        gain_of(&d->corrected, &o, &found->outcome, TUN_HOME) >= TUN_HOME) {
        return false;
    }
    found->plan = r->home;
    found->outcome = o;
    return true;
}

/* The gain that a plan has to have: more than the table's error where nothing but the table has
 * changed, and where the serving plan counts as measured and the other one as predicted. */
static double least(const struct tun_record *r, const struct tun_decision *d,
                    const struct pl_plan *plan)
{
    double gain = d->cause == TUN_CAUSE_MEASURED       ? base_max(r->gain_min, TUN_HOME)
                  : (r->events & TUN_EVENT_PARTS) != 0 ? base_max(r->gain_min, TUN_PARTS)
                                                       : r->gain_min;

    return all_free(r, d) && pl_plan_equal(plan, &r->home) ? -TUN_AS_GOOD : base_max(gain, 1e-9);
}

/* Between parts of an EP, what keeping the order costs shows in measurements alone. */
static void as_measured(const struct tun_record *r, struct tun_outcome *before)
{
    if (r->events & TUN_EVENT_PARTS) {
        before->bottleneck_ns = base_max(before->bottleneck_ns, r->measured_ns);
    }
}

static int solve(const struct tun_record *r, struct tun_decision *d)
{
    base_autofree struct tun_solution *found = malloc(sizeof(*found));
    struct tun_problem fast = d->corrected;
    struct tun_outcome before = {0};
    struct pl_plan serving;
    int error = found ? tun_solve(&d->corrected, found) : -ENOMEM;

    if (error < 0) {
        return error;
    }
    d->must = !serving_plan(r, d, &serving) || tun_eval(&d->corrected, &serving, &before) != 0;
    as_measured(r, &before);
    d->gain = d->must ? INFINITY : gain_of(&d->corrected, &before, &found->outcome, r->gain_min);
    if (!d->must && home(r, d, found)) {
        d->gain = gain_of(&d->corrected, &before, &found->outcome, r->gain_min);
    } else if (!d->must && d->gain < r->gain_min && fast.objective == TUN_THROUGHPUT) {
        base_autofree struct tun_solution *fastest = malloc(sizeof(*fastest));
        double gain;

        fast.bounds.slack = 0;
        error = fastest ? tun_solve(&fast, fastest) : -ENOMEM;
        if (error < 0) {
            return error;
        }
        gain = gain_of(&fast, &before, &fastest->outcome, r->gain_min);
        if (gain >= base_max(FASTEST * r->gain_min, d->corrected.bounds.slack)) {
            *found = *fastest;
            d->gain = gain;
        }
    }
    d->before_ns = d->must ? INFINITY : before.bottleneck_ns;
    d->after_ns = found->outcome.bottleneck_ns;
    if (!d->must && pl_plan_equal(&serving, &found->plan)) {
        d->hold = TUN_HOLD_SAME;
    } else if (!d->must && d->gain < least(r, d, &found->plan)) {
        d->hold = d->gain < 0 && !tun_keeps(&d->corrected, &found->outcome) ? TUN_HOLD_BOUNDS
                                                                            : TUN_HOLD_GAIN;
    }
    d->plan = found->plan;
    rename_eps(&d->plan, d->eps_left);
    return 0;
}

/* Return: as measured, the serving plan is nearer to the bound than a change has to gain. */
static bool near_bound(const struct tun_record *r, const struct tun_decision *d)
{
    double bound_ns = 0;

    bool shown = tun_cause_felt(d->cause) || d->cause == TUN_CAUSE_MEASURED;

    if (r->measured_ns > 0 && !d->must && !d->released && shown &&
        d->corrected.objective == TUN_THROUGHPUT) {
        bound_ns = tun_bound_ns(&d->corrected);
    }
    return bound_ns > 0 && r->measured_ns < (1 + r->gain_min) * bound_ns;
}

/* The plan has to gain enough also if every level is one standard error nearer to 0. */
static int check_uncertainty(const struct tun_record *r, struct tun_decision *d)
{
    size_t cells = r->problem.ep_count * r->problem.unit_count, eps[PL_EP_MAX];
    base_autofree double *slow = malloc(cells * sizeof(*slow));
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct tun_outcome before, after;
    struct pl_plan serving, found = d->plan;
    double levels[PL_EP_MAX];
    int error;

    if (d->hold != TUN_HOLD_NONE || d->must) {
        return 0;
    }
    if (!slow) {
        return -ENOMEM;
    }
    memcpy(slow, r->slow, cells * sizeof(*slow));
    tun_levels_correct(r, UNCERTAINTY, slow, levels);
    for (size_t i = 0; d->released && i < cells; i++) {
        slow[i] = d->slow[i] == 1 ? 1 : slow[i];
    }
    error = tun_correct(r, slow, d->shared, &p, eps);
    if (error) {
        return error;
    }
    from_record_eps(d, &found);
    if (serving_plan(r, d, &serving) && tun_eval(&p, &serving, &before) == 0 &&
        tun_eval(&p, &found, &after) == 0) {
        as_measured(r, &before);
        d->gain = base_min(d->gain, gain_of(&p, &before, &after, r->gain_min));
    }
    if (d->gain < least(r, d, &d->plan)) {
        d->hold = TUN_HOLD_GAIN;
    }
    return 0;
}

static void guard(const struct tun_record *r, struct tun_decision *d)
{
    bool asked = d->must || (r->events & TUN_EVENT_BUTTON) != 0;
    /* so much is lost by waiting, or the reason of the last change is gone */
    bool urgent = r->gain_urgent > 0 && (d->gain >= r->gain_urgent || d->released);

    if (d->hold == TUN_HOLD_NONE && !asked && r->cooldown_left_s > 0 && !urgent) {
        d->hold = TUN_HOLD_COOLDOWN;
    }
    if (d->hold == TUN_HOLD_NONE && !asked && r->budget_left < 1) {
        d->hold = TUN_HOLD_BUDGET;
    }
    d->replan = d->hold == TUN_HOLD_NONE;
}

static double mean_clock_factor(const struct tun_record *r, size_t ep)
{
    double sum = 0;

    for (size_t u = 0; u < r->problem.unit_count; u++) {
        sum += log(tun_clock_factor(&r->eps[ep], r->beta[u]));
    }
    return exp(sum / (double)r->problem.unit_count);
}

int tun_decide(const struct tun_record *r, struct tun_decision *ret)
{
    size_t cells = r->problem.ep_count * r->problem.unit_count;
    base_cleanup(tun_decision_deinit) struct tun_decision d = TUN_DECISION_NULL;
    double levels[PL_EP_MAX] = {0};
    char why[TUN_ERROR_MAX];
    int error;

    if (tun_record_check(r, why) < 0) {
        return -EINVAL;
    }
    d.slow = malloc(cells * sizeof(*d.slow));
    if (!d.slow) {
        return -ENOMEM;
    }
    memcpy(d.slow, r->slow, cells * sizeof(*d.slow));
    d.cause = tun_attribute(r, &d.ep, &d.quota);
    tun_levels_correct(r, 0, d.slow, levels);
    d.released = tun_levels_release(r, d.slow, &d.tentative);
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        d.factor[k] = exp(levels[k]) * mean_clock_factor(r, k);
        d.shared[k] = r->eps[k].contended || tun_cause_felt(d.cause);
    }
    error = tun_correct(r, d.slow, d.shared, &d.corrected, d.eps_left);
    error = error ? error : solve(r, &d);
    if (error) {
        return error;
    }
    error = check_uncertainty(r, &d);
    if (error) {
        return error;
    }
    if (d.hold == TUN_HOLD_NONE && near_bound(r, &d)) {
        d.hold = TUN_HOLD_GAIN;
    }
    d.search = r->search && !d.must;
    d.hold = d.search ? TUN_HOLD_NONE : d.hold;
    guard(r, &d);
    *ret = d;
    d = TUN_DECISION_NULL;
    return 0;
}

void tun_decision_deinit(struct tun_decision *d)
{
    tun_problem_deinit(&d->corrected);
    free(d->slow);
    *d = TUN_DECISION_NULL;
}

bool tun_decision_same(const struct tun_decision *a, const struct tun_decision *b)
{
    if (a->replan != b->replan || a->cause != b->cause || a->hold != b->hold) {
        return false;
    }
    if (a->gain != b->gain && !(fabs(a->gain - b->gain) <= 1e-6 * (1 + fabs(a->gain)))) {
        return false;
    }
    return !a->replan || pl_plan_equal(&a->plan, &b->plan);
}
