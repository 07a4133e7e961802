/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/decide.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/eval.h"

#define AGREE 0.08      /* teams of a kind whose levels differ by less are slow as one */
#define CERTAIN 3.0     /* standard errors from 0 that make a level one to correct by */
#define SNAP 0.03       /* a factor nearer to 1 than this is 1 */
#define CLOCK_STEP 0.03 /* relative: a frequency that differs by more is another one */
#define SLOWED 0.05     /* log of a factor that is more than an error of the table */
#define FELL 0.08       /* log by which a kind has to be faster to be free again */
#define THROTTLED 0.1   /* share of the cgroup's periods that says that its quota is felt */
#define PRESSED 0.25    /* share of the time in which tasks waited that is more than their own */
#define WAITED 0.25     /* share of a change that has to be waiting to be called contention */
/* The fastest plan instead of the one of lower latency within the slack: where that gains too
 * little and the fastest this much of gain_min. */
#define FASTEST 1.5
#define DOUBT 1.0 /* standard errors of the levels at which the gain still has to be there */

static const char *const causes[TUN_CAUSE_COUNT] = {"none",    "governor",   "frequency",
                                                    "thermal", "contention", "hotplug",
                                                    "cpuset",  "throughput", "gpio"};
static const char *const holds[TUN_HOLD_COUNT] = {"none",     "same",   "gain",
                                                  "cooldown", "budget", "bounds"};

const char *tun_cause_name(enum tun_cause cause)
{
    return causes[(unsigned)cause < TUN_CAUSE_COUNT ? cause : TUN_CAUSE_NONE];
}

const char *tun_hold_name(enum tun_hold hold)
{
    return holds[(unsigned)hold < TUN_HOLD_COUNT ? hold : TUN_HOLD_NONE];
}

static const struct pl_group *group_of(const struct tun_record *r, const struct tun_team_now *t)
{
    return &r->plan.stages[t->stage].groups[t->group];
}

static bool moved(const struct tun_team_now *t)
{
    return t->firm || fabs(t->level) > CERTAIN * t->sigma;
}

static bool says_nothing(const struct tun_team_now *t)
{
    return t->light && t->level < 0;
}

static bool counts(const struct tun_team_now *t)
{
    return moved(t) && !says_nothing(t);
}

/* @errors: standard errors by which the level is taken nearer to 0. */
static double nearer(const struct tun_team_now *t, double errors)
{
    if (says_nothing(t)) {
        return 0;
    }
    return copysign(base_max(0.0, fabs(t->level) - errors * t->sigma), t->level);
}

/* The mean level of a kind's teams, by cores. Return: are they slow or fast as one. */
static bool kind_level(const struct tun_record *r, size_t kind, double errors, double *ret_level,
                       bool *ret_any)
{
    double sum = 0, cores = 0;
    bool agree = true;

    *ret_any = false;
    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];
        const struct pl_group *g = group_of(r, t);

        if (g->ep == kind) {
            sum += nearer(t, errors) * g->width * g->count;
            cores += g->width * g->count;
            *ret_any |= counts(t);
        }
    }
    *ret_level = cores > 0 ? sum / cores : 0;
    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (group_of(r, t)->ep == kind) {
            agree &= fabs(nearer(t, errors) - *ret_level) <= base_max(AGREE, CERTAIN * t->sigma);
        }
    }
    return agree;
}

static void scale(double *slow, size_t first, size_t last, double level)
{
    for (size_t u = first; u <= last; u++) {
        slow[u] = base_max(1e-6, base_min(1e6, slow[u] * exp(level)));
        if (fabs(log(slow[u])) < SNAP) {
            slow[u] = 1;
        }
    }
}

static void correct_levels(const struct tun_record *r, double errors, double *slow,
                           double *ret_levels)
{
    size_t units = r->problem.unit_count;

    for (size_t k = 0; k < r->problem.kind_count; k++) {
        bool any, agree = kind_level(r, k, errors, &ret_levels[k], &any);

        if (any && agree) {
            scale(&slow[k * units], 0, units - 1, ret_levels[k]);
        }
        for (size_t i = 0; any && !agree && i < r->team_count; i++) {
            const struct tun_team_now *t = &r->teams[i];

            if (group_of(r, t)->ep == k && counts(t)) {
                scale(&slow[k * units], r->plan.stages[t->stage].first_unit,
                      r->plan.stages[t->stage].last_unit, nearer(t, errors));
            }
        }
        ret_levels[k] = any ? ret_levels[k] : 0;
    }
}

/* Log of the factor that the kind's teams run at, by their own units. Return: has it teams. */
static bool team_factor(const struct tun_record *r, const double *slow, size_t kind, double *ret)
{
    double slowed = 0, free = 0;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct pl_stage_plan *stage = &r->plan.stages[r->teams[i].stage];
        const struct pl_group *g = group_of(r, &r->teams[i]);

        for (size_t u = stage->first_unit; g->ep == kind && u <= stage->last_unit; u++) {
            double ns = tun_cell_at(&r->problem.costs, kind, g->width, u)->ns;

            free += ns;
            slowed += ns * slow[kind * r->problem.unit_count + u];
        }
    }
    *ret = free > 0 ? log(slowed / free) : 0;
    return free > 0;
}

/* What light teams of the kind show besides, at most 0. */
static double light_level(const struct tun_record *r, size_t kind)
{
    double least = 0;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (group_of(r, t)->ep == kind && moved(t) && says_nothing(t)) {
            least = base_min(least, t->level);
        }
    }
    return least;
}

static double most_slowed(const struct tun_record *r, const double *slow, size_t kind)
{
    double most = 0;

    for (size_t u = 0; u < r->problem.unit_count; u++) {
        most = base_max(most, fabs(log(slow[kind * r->problem.unit_count + u])));
    }
    return most;
}

static void set_free(const struct tun_record *r, double *slow, size_t kind)
{
    for (size_t u = 0; u < r->problem.unit_count; u++) {
        slow[kind * r->problem.unit_count + u] = 1;
    }
}

/* What was foreign has ended: see the head of the header. Return: on some kind. */
static bool release(const struct tun_record *r, double *slow, bool *ret_tentative)
{
    bool any = (r->events & TUN_EVENT_PROBE) != 0, all = true;

    for (size_t k = 0; k < r->problem.kind_count; k++) {
        double before, now, light = light_level(r, k);

        if (!team_factor(r, r->slow, k, &before) || !team_factor(r, slow, k, &now)) {
            all &= most_slowed(r, slow, k) <= TUN_FREE;
        } else if (most_slowed(r, r->slow, k) > SLOWED && before - now - light > FELL &&
                   now + light <= TUN_FREE) {
            *ret_tentative |= light < 0;
            set_free(r, slow, k);
            any = true;
        } else {
            all &= fabs(now) <= TUN_FREE;
        }
    }
    for (size_t k = 0; any && all && k < r->problem.kind_count; k++) {
        set_free(r, slow, k);
    }
    return any;
}

static bool clock_moved(const struct tun_kind_now *k)
{
    return k->khz > 0 && k->khz_before > 0 && fabs(log(k->khz / k->khz_before)) > CLOCK_STEP;
}

static bool cores_moved(const struct tun_record *r, size_t *ret_kind)
{
    for (size_t k = 0; k < r->problem.kind_count; k++) {
        if (r->kinds[k].cores != r->problem.kinds[k].cores) {
            *ret_kind = k;
            return true;
        }
    }
    return false;
}

static enum tun_cause clock_cause(const struct tun_record *r, size_t *ret_kind)
{
    double most = 0;

    for (size_t k = 0; k < r->problem.kind_count; k++) {
        const struct tun_kind_now *n = &r->kinds[k];

        if (clock_moved(n) && fabs(log(n->khz / n->khz_before)) > most) {
            most = fabs(log(n->khz / n->khz_before));
            *ret_kind = k;
        }
    }
    if (most == 0) {
        return TUN_CAUSE_NONE;
    }
    if (r->kinds[*ret_kind].thermal) {
        return TUN_CAUSE_THERMAL;
    }
    return r->kinds[*ret_kind].governor_changed ? TUN_CAUSE_GOVERNOR : TUN_CAUSE_FREQUENCY;
}

/* Was a team kept from its cores. Service s, CPU share c: the share of a change by exp(level) that
 * is waiting is (rise of 1 - c) / (1 - exp(-level)) at first order. */
static bool contended(const struct tun_record *r, const struct tun_team_now *t, bool *ret_quota)
{
    *ret_quota = r->throttled > THROTTLED;
    return *ret_quota || (isfinite(t->waiting) ? t->waiting > WAITED * (1 - exp(-t->level))
                                               : r->pressure > PRESSED);
}

/* The team that moved most says what it was. */
static enum tun_cause level_cause(const struct tun_record *r, size_t *ret_kind, bool *ret_quota)
{
    const struct tun_team_now *most = NULL;
    const struct tun_kind_now *k;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (moved(t) && (!most || t->firm > most->firm ||
                         (t->firm == most->firm && fabs(t->level) > fabs(most->level)))) {
            most = t;
        }
    }
    if (!most) {
        return TUN_CAUSE_NONE;
    }
    *ret_kind = group_of(r, most)->ep;
    k = &r->kinds[*ret_kind];
    if (most->level > 0 && contended(r, most, ret_quota)) {
        return TUN_CAUSE_CONTENTION;
    }
    if (k->thermal) {
        return TUN_CAUSE_THERMAL;
    }
    if (k->contended && most->level < 0) {
        return TUN_CAUSE_CONTENTION;
    }
    if (k->governor_changed) {
        return TUN_CAUSE_GOVERNOR;
    }
    return k->limit_changed ? TUN_CAUSE_FREQUENCY : TUN_CAUSE_THROUGHPUT;
}

static enum tun_cause attribute(const struct tun_record *r, size_t *ret_kind, bool *ret_quota)
{
    enum tun_cause cause;

    *ret_kind = SIZE_MAX;
    if ((r->events & TUN_EVENT_CPUSET) != 0) {
        cores_moved(r, ret_kind);
        return TUN_CAUSE_CPUSET;
    }
    if ((r->events & TUN_EVENT_HOTPLUG) != 0) {
        cores_moved(r, ret_kind);
        return TUN_CAUSE_HOTPLUG;
    }
    if ((r->events & (TUN_EVENT_BUTTON | TUN_EVENT_POWER)) != 0) {
        return TUN_CAUSE_GPIO;
    }
    cause = clock_cause(r, ret_kind);
    cause = cause == TUN_CAUSE_NONE ? level_cause(r, ret_kind, ret_quota) : cause;
    if (cause != TUN_CAUSE_NONE) {
        return cause;
    }
    return r->events & TUN_EVENT_PROBE ? TUN_CAUSE_CONTENTION : TUN_CAUSE_THROUGHPUT;
}

static void from_record_kinds(const struct tun_decision *d, struct pl_plan *plan)
{
    size_t to[PL_EP_MAX] = {0};

    for (size_t k = 0; k < d->corrected.kind_count; k++) {
        to[d->kinds_left[k]] = k;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            plan->stages[s].groups[g].ep = (uint16_t)to[plan->stages[s].groups[g].ep];
        }
    }
}

/* The serving plan with the corrected problem's kinds. Return: do the cores suffice. */
static bool serving_plan(const struct tun_record *r, const struct tun_decision *d,
                         struct pl_plan *ret)
{
    for (size_t k = 0; k < r->problem.kind_count; k++) {
        uint16_t cores = r->kinds[k].cores;

        if (cores < r->problem.kinds[k].cores && pl_plan_cores(&r->plan, k) > cores) {
            return false;
        }
    }
    *ret = r->plan;
    from_record_kinds(d, ret);
    return true;
}

static void to_record_kinds(const struct tun_decision *d, struct pl_plan *plan)
{
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            plan->stages[s].groups[g].ep = (uint16_t)d->kinds_left[plan->stages[s].groups[g].ep];
        }
    }
}

static double figure(const struct tun_problem *p, const struct tun_outcome *o)
{
    return p->objective == TUN_LATENCY ? o->latency_ns
           : p->objective == TUN_POWER ? o->energy_nj
                                       : o->bottleneck_ns;
}

static bool keeps(const struct tun_problem *p, const struct tun_outcome *o)
{
    return !(p->bounds.period_max_ns > 0 && o->bottleneck_ns > p->bounds.period_max_ns) &&
           !(p->bounds.latency_max_ns > 0 && o->latency_ns > p->bounds.latency_max_ns);
}

/* A plan that keeps the bounds gains at least @least over one that does not. */
static double gain_of(const struct tun_problem *p, const struct tun_outcome *before,
                      const struct tun_outcome *after, double least)
{
    if (keeps(p, before) == keeps(p, after)) {
        return keeps(p, after) ? figure(p, before) / figure(p, after) - 1
                               : before->bottleneck_ns / after->bottleneck_ns - 1;
    }
    return keeps(p, after) ? base_max(least, before->bottleneck_ns / after->bottleneck_ns - 1) : -1;
}

static bool all_free(const struct tun_record *r, const struct tun_decision *d)
{
    for (size_t k = 0; k < r->problem.kind_count; k++) {
        if (most_slowed(r, d->slow, k) > 0) {
            return false;
        }
    }
    return d->released && d->corrected.kind_count == r->problem.kind_count;
}

/* The plan of before, where nothing is slowed any more. Return: is it that. */
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

/* The gain that a plan has to have. */
static double least(const struct tun_record *r, const struct tun_decision *d,
                    const struct pl_plan *plan)
{
    return all_free(r, d) && pl_plan_equal(plan, &r->home) ? -TUN_AS_GOOD
                                                           : base_max(r->gain_min, 1e-9);
}

/* Is so much lost by waiting that it is not waited. */
static bool urgent(const struct tun_record *r, const struct tun_decision *d)
{
    return r->gain_urgent > 0 && d->gain >= r->gain_urgent;
}

static int solve(const struct tun_record *r, struct tun_decision *d)
{
    base_autofree struct tun_solution *found = malloc(sizeof(*found));
    struct tun_problem fast = d->corrected;
    struct tun_outcome before;
    struct pl_plan serving;
    int error = found ? tun_solve(&d->corrected, found) : -ENOMEM;

    if (error < 0) {
        return error;
    }
    d->must = !serving_plan(r, d, &serving) || tun_eval(&d->corrected, &serving, &before) != 0;
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
        if (gain >= FASTEST * r->gain_min) {
            *found = *fastest;
            d->gain = gain;
        }
    }
    d->before_ns = d->must ? INFINITY : before.bottleneck_ns;
    d->after_ns = found->outcome.bottleneck_ns;
    if (!d->must && pl_plan_equal(&serving, &found->plan)) {
        d->hold = TUN_HOLD_SAME;
    } else if (!d->must && d->gain < least(r, d, &found->plan)) {
        d->hold =
            d->gain < 0 && !keeps(&d->corrected, &found->outcome) ? TUN_HOLD_BOUNDS : TUN_HOLD_GAIN;
    }
    d->plan = found->plan;
    to_record_kinds(d, &d->plan);
    return 0;
}

/* The gain has to be there too if the levels are an error nearer to what was expected. */
static int doubt(const struct tun_record *r, struct tun_decision *d)
{
    size_t cells = r->problem.kind_count * r->problem.unit_count, kinds[PL_EP_MAX];
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
    correct_levels(r, DOUBT, slow, levels);
    for (size_t i = 0; d->released && i < cells; i++) {
        slow[i] = d->slow[i] == 1 ? 1 : slow[i];
    }
    error = tun_correct(r, slow, &p, kinds);
    if (error) {
        return error;
    }
    from_record_kinds(d, &found);
    if (serving_plan(r, d, &serving) && tun_eval(&p, &serving, &before) == 0 &&
        tun_eval(&p, &found, &after) == 0) {
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

    if (d->hold == TUN_HOLD_NONE && !asked && r->cooldown_left_s > 0 && !urgent(r, d)) {
        d->hold = TUN_HOLD_COOLDOWN;
    }
    if (d->hold == TUN_HOLD_NONE && !asked && r->budget_left < 1) {
        d->hold = TUN_HOLD_BUDGET;
    }
    d->replan = d->hold == TUN_HOLD_NONE;
}

static double mean_clock_factor(const struct tun_record *r, size_t kind)
{
    double sum = 0;

    for (size_t u = 0; u < r->problem.unit_count; u++) {
        sum += log(tun_clock_factor(&r->kinds[kind], r->beta[u]));
    }
    return exp(sum / (double)r->problem.unit_count);
}

int tun_decide(const struct tun_record *r, struct tun_decision *ret)
{
    size_t cells = r->problem.kind_count * r->problem.unit_count;
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
    d.cause = attribute(r, &d.kind, &d.quota);
    correct_levels(r, 0, d.slow, levels);
    d.released = release(r, d.slow, &d.tentative);
    for (size_t k = 0; k < r->problem.kind_count; k++) {
        d.factor[k] = exp(levels[k]) * mean_clock_factor(r, k);
    }
    error = tun_correct(r, d.slow, &d.corrected, d.kinds_left);
    error = error ? error : solve(r, &d);
    if (error) {
        return error;
    }
    error = doubt(r, &d);
    if (error) {
        return error;
    }
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
