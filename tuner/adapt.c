/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/adapt_private.h"

#define REFINE 16u                 /* times as many windows as settle a plan make its level exact */
#define NEWEST ((size_t)3)         /* windows whose median a single spike does not move */
#define LEVEL_WINDOWS ((size_t)25) /* that say where a quiet team stands */
#define MEDIAN_ERROR 1.25          /* standard error of a median over that of a mean */
#define SLOWED 1.05                /* a factor that is worth a probe */
#define TABLE_ERROR 0.08           /* log of a factor that says nothing about the machine */
#define SIDE_WINDOWS ((size_t)5)   /* whose median says on which side of a level a team is */
#define SIDE_SPREADS 2.0
#define LATE 0.3           /* share of the newest window in what is felt of the machine */
#define VERIFY_WINDOWS 40u /* after which a plan that is not busy is not verified */

static bool options_sane(const struct tun_adapt_options *o)
{
    return tun_detect_check(&o->detect) && o->gain_min >= 0 && o->gain_min <= 10 &&
           o->gain_urgent >= 0 && o->gain_urgent <= 10 && o->hourly >= 0 && isfinite(o->hourly) &&
           o->verify_margin > 0 && isfinite(o->verify_margin) && o->settle >= 1 &&
           o->settle <= TUN_DETECT_RING && o->backoff_most <= 16 &&
           o->cooldown_ns <= 86400 * BASE_NS_PER_S;
}

int tun_adapt_new(const struct tun_adapt_options *o, struct tun_adapt **ret)
{
    struct tun_adapt_options options = o ? *o : TUN_ADAPT_DEFAULTS;
    struct tun_adapt *a;

    if (!options_sane(&options)) {
        return -EINVAL;
    }
    a = calloc(1, sizeof(*a));
    if (!a) {
        return -ENOMEM;
    }
    a->options = options;
    tun_guard_start(&a->guard, &options);
    *ret = a;
    return 0;
}

struct tun_adapt *tun_adapt_free(struct tun_adapt *a)
{
    if (a) {
        tun_problem_deinit(&a->problem);
        free(a->beta);
        free(a->slow);
        free(a->slow_before);
        free(a->watches);
        free(a);
    }
    return NULL;
}

static void watch_settle(const struct tun_adapt *a, struct tun_watch *w)
{
    w->skip_left = 1;
    w->settle_left = a->options.settle;
    w->waiting_sum = w->waiting_base = 0;
    w->waiting_count = 0;
    w->waits[0] = w->waits[1] = w->waits[2] = NAN;
}

/* One watch for each group of the plan; the noise of the last plan's teams is what is expected of
 * these. */
static int watch_plan(struct tun_adapt *a)
{
    struct tun_detect_options o = a->options.detect;
    struct tun_watch *watches;
    size_t count = 0;

    for (size_t i = 0; i < a->watch_count; i++) {
        o.sigma_start = base_max(o.sigma_start, a->watches[i].detect.sigma);
    }
    for (size_t s = 0; s < a->plan.stage_count; s++) {
        count += a->plan.stages[s].group_count;
    }
    watches = calloc(count, sizeof(*watches));
    if (!watches) {
        return -ENOMEM;
    }
    free(a->watches);
    a->watches = watches;
    a->watch_count = 0;
    for (size_t s = 0; s < a->plan.stage_count; s++) {
        for (size_t g = 0; g < a->plan.stages[s].group_count; g++) {
            const struct pl_group *group = &a->plan.stages[s].groups[g];
            struct tun_watch *w = &watches[a->watch_count++];

            *w = (struct tun_watch){.stage = (uint16_t)s,
                                    .group = (uint16_t)g,
                                    .kind = group->ep,
                                    .width = group->width,
                                    .count = group->count};
            tun_detect_init(&w->detect, &o);
            watch_settle(a, w);
            tun_watch_expect(a, w);
        }
    }
    for (size_t k = 0; k < a->problem.kind_count; k++) {
        a->kinds[k].used = pl_plan_cores(&a->plan, k) > 0;
        a->kinds[k].learn_left += a->kinds[k].learn_left > 0 ? a->options.settle + 1 : 0;
    }
    a->disagrees = a->returned = false;
    a->probe_at_ns = a->guard.clock_ns + (a->options.probe_ns << base_min(a->probes, 10u));
    return 0;
}

static int take_problem(struct tun_adapt *a, const struct tun_problem *p)
{
    size_t cells = p->kind_count * p->unit_count;
    struct tun_problem copy;
    double *slow = malloc(cells * sizeof(*slow)), *beta = malloc(p->unit_count * sizeof(*beta));
    double *before = malloc(cells * sizeof(*before));
    int error = slow && beta && before ? tun_problem_copy(p, &copy) : -ENOMEM;

    if (error) {
        free(slow);
        free(beta);
        free(before);
        return error;
    }
    for (size_t i = 0; i < cells; i++) {
        slow[i] = before[i] = 1;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        beta[u] = a->beta_count == p->unit_count ? a->beta[u] : tun_beta_default(&p->units[u]);
    }
    tun_problem_deinit(&a->problem);
    free(a->beta);
    free(a->slow);
    free(a->slow_before);
    a->problem = copy;
    a->slow = slow;
    a->slow_before = before;
    a->beta = beta;
    a->beta_count = p->unit_count;
    return 0;
}

/* Is a factor more than an error of the table. That something is faster than that is always one. */
static bool any_slow(const struct tun_adapt *a)
{
    for (size_t i = 0; i < a->problem.kind_count * a->problem.unit_count; i++) {
        if (log(a->slow[i]) > TABLE_ERROR) {
            return true;
        }
    }
    return false;
}

/* The plan that serves is the one to return to when everything is as it is now. */
static void note_home(struct tun_adapt *a)
{
    a->home = a->plan;
    for (size_t k = 0; k < a->problem.kind_count; k++) {
        a->home_khz[k] = a->kinds[k].khz;
    }
}

int tun_adapt_serve(struct tun_adapt *a, const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_kind_seen *kinds, uint64_t now_ns)
{
    char why[TUN_ERROR_MAX];
    struct pl_ep_set eps;
    int error;

    a->serving = false;
    if (tun_problem_check(p, why) < 0) {
        return -EINVAL;
    }
    tun_eps(p, &eps);
    if (pl_plan_check(plan, &eps, p->unit_count, why, sizeof(why)) < 0) {
        return -EINVAL;
    }
    error = take_problem(a, p);
    if (error) {
        return error;
    }
    a->plan = *plan;
    tun_guard_time(&a->guard, &a->options, now_ns);
    tun_kinds_start(a, kinds);
    note_home(a);
    a->pending = a->told = a->probing = false;
    a->verify_left = a->events = a->deferred = a->probes = 0;
    a->throttled = a->pressure = 0;
    error = watch_plan(a);
    a->serving = error == 0;
    return error;
}

static struct tun_watch *watch_of(struct tun_adapt *a, const struct tun_team_seen *t)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        if (a->watches[i].stage == t->stage && a->watches[i].group == t->group) {
            return &a->watches[i];
        }
    }
    return NULL;
}

static void see_waiting(struct tun_watch *w, const struct tun_team_seen *t)
{
    double share = 1 - t->cpu_ns / t->service_ns;

    if (!(t->cpu_ns >= 0) || !isfinite(share)) {
        return;
    }
    share = base_max(0.0, base_min(1.0, share));
    if (w->settle_left > 0) {
        w->waiting_sum += share;
        w->waiting_base = w->waiting_sum / ++w->waiting_count;
    } else if (w->waiting_count > 0) {
        memmove(w->waits, w->waits + 1, (WAITS - 1) * sizeof(*w->waits));
        w->waits[WAITS - 1] = share - w->waiting_base;
    }
}

/* The level that a few windows gave is made exact by the windows that follow, as long as they are
 * quiet. */
static void refine(const struct tun_adapt *a, struct tun_watch *w)
{
    if (w->quiet >= REFINE * a->options.settle || tun_detect_state(&w->detect) != TUN_SAME) {
        return;
    }
    w->quiet++;
    if (w->quiet == w->refine_at) {
        tun_detect_rebase(&w->detect, tun_detect_level(&w->detect, w->quiet));
        w->refine_at *= 2;
    }
}

/* On which side of its level a team is, and since when; a spike more or less is not seen. */
static void see_side(struct tun_watch *w, uint64_t start_ns)
{
    double off = tun_detect_level(&w->detect, SIDE_WINDOWS) - w->detect.base;
    enum tun_change side = off > SIDE_SPREADS * w->detect.sigma    ? TUN_SLOWER
                           : off < -SIDE_SPREADS * w->detect.sigma ? TUN_FASTER
                                                                   : TUN_SAME;

    if (side != w->side || w->settle_left > 0 || start_ns < w->side_ns) {
        w->side = side;
        w->side_ns = start_ns;
    }
}

/* Log by which a settled plan may do otherwise than predicted. A plan that returned has served so
 * before: within what counts as free it tells nothing new. */
static double surprise(const struct tun_adapt *a)
{
    return base_max(log1p(a->options.verify_margin), a->returned ? TUN_FREE : 0.0);
}

static bool see_team(struct tun_adapt *a, struct tun_watch *w, const struct tun_team_seen *t,
                     uint64_t start_ns)
{
    double x = log(t->service_ns / w->expected_ns);

    if (t->starved || t->frames == 0 || !isfinite(x)) {
        return false;
    }
    if (w->skip_left > 0) {
        w->skip_left--;
        return false;
    }
    see_waiting(w, t);
    w->busy += (w->busy > 0 ? LATE : 1) * (t->busy - w->busy);
    tun_detect_add(&w->detect, x, start_ns);
    see_side(w, start_ns);
    if (w->settle_left == 0) {
        refine(a, w);
        return false;
    }
    if (--w->settle_left == 0) {
        double level = tun_detect_level(&w->detect, a->options.settle);

        tun_detect_rebase(&w->detect, level);
        w->quiet = a->options.settle;
        w->refine_at = 2 * w->quiet;
        return !w->voided && fabs(level) > surprise(a);
    }
    return false;
}

static void see_teams(struct tun_adapt *a, const struct tun_seen_window *seen)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        tun_watch_expect(a, &a->watches[i]);
    }
    for (size_t i = 0; i < seen->team_count; i++) {
        struct tun_watch *w = watch_of(a, &seen->teams[i]);

        if (w) {
            a->disagrees |= see_team(a, w, &seen->teams[i], seen->start_ns);
        }
    }
    tun_kinds_learn(a);
}

/* The bottleneck as the settled windows show it. Return: false until all teams have settled. */
static bool measured_ns(const struct tun_adapt *a, double *ret_ns)
{
    double rates[PL_STAGE_MAX] = {0};

    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        if (w->settle_left > 0) {
            return false;
        }
        rates[w->stage] += w->count / (w->expected_ns * exp(w->detect.base));
    }
    *ret_ns = 0;
    for (size_t s = 0; s < a->plan.stage_count; s++) {
        *ret_ns = base_max(*ret_ns, 1 / rates[s]);
    }
    return true;
}

static bool verify(struct tun_adapt *a)
{
    double ns;

    if (a->verify_left == 0 || !measured_ns(a, &ns)) {
        a->verify_left -= a->verify_left > 0;
        return false;
    }
    a->verify_left = 0;
    return ns > a->after_ns * (1 + a->options.verify_margin) && ns > a->before_ns;
}

/* Is what is left of the kind more than the team asks for. */
static bool light(const struct tun_adapt *a, const struct tun_watch *w)
{
    double most = 1;

    for (size_t u = 0; u < a->problem.unit_count; u++) {
        most = base_max(most, a->slow[w->kind * a->problem.unit_count + u]);
    }
    return a->kinds[w->kind].contended && w->busy > 0 && w->busy < 1 / most;
}

/* May a team that is light be taken as a sign that its kind is free: when it got faster just now,
 * or once it is time. */
static bool shows(const struct tun_adapt *a, const struct tun_watch *w)
{
    return !light(a, w) || tun_detect_state(&w->detect) == TUN_FASTER ||
           (a->options.probe_ns > 0 && a->guard.clock_ns >= a->probe_at_ns);
}

/* Has the team been on the same side for as long as the back-off asks. */
static bool stands(const struct tun_adapt *a, const struct tun_watch *w, enum tun_change side)
{
    uint64_t hold_ns = tun_guard_hold_ns(&a->guard, &a->options);

    return hold_ns == 0 || (w->side == side && a->guard.clock_ns > w->side_ns &&
                            a->guard.clock_ns - w->side_ns >= hold_ns);
}

static bool any_firm(const struct tun_adapt *a)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        if (w->settle_left == 0 && a->kinds[w->kind].learn_left == 0 &&
            tun_detect_firm(&w->detect) && stands(a, w, tun_detect_state(&w->detect))) {
            return true;
        }
    }
    return false;
}

/* Does the plan, settled, do otherwise than predicted. While it is verified that is for the
 * verification to say. */
static bool disagrees(const struct tun_adapt *a)
{
    for (size_t i = 0; a->disagrees && a->verify_left == 0 && i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        if (w->settle_left == 0 && fabs(w->detect.base) > surprise(a) && stands(a, w, TUN_SAME) &&
            (w->detect.base > 0 || shows(a, w))) {
            return true;
        }
    }
    return false;
}

static bool time_to_probe(const struct tun_adapt *a)
{
    for (size_t k = 0; a->options.probe_ns > 0 && k < a->problem.kind_count; k++) {
        if (a->kinds[k].slowed && !a->kinds[k].used && a->kinds[k].cores > 0 &&
            a->guard.clock_ns >= a->probe_at_ns) {
            return true;
        }
    }
    return false;
}

static void probe_factors(const struct tun_adapt *a, double *slow)
{
    for (size_t k = 0; k < a->problem.kind_count; k++) {
        for (size_t u = 0; u < a->problem.unit_count; u++) {
            if (a->kinds[k].slowed && !a->kinds[k].used) {
                slow[k * a->problem.unit_count + u] = 1;
            }
        }
    }
}

/* Windows that say where the kind's teams stand: those since the newest change that a team saw,
 * firm ones first. */
static size_t windows_of(const struct tun_adapt *a, size_t kind)
{
    size_t newest[2] = {SIZE_MAX, SIZE_MAX}; /* of alarms, of firm ones */

    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_detect *d = &a->watches[i].detect;
        size_t windows = tun_detect_change(d, NULL);

        if (a->watches[i].kind == kind && a->watches[i].settle_left == 0 && windows > 0) {
            size_t *which = &newest[tun_detect_firm(d)];

            *which = base_min(*which, windows);
        }
    }
    newest[0] = newest[1] < SIZE_MAX ? newest[1] : newest[0];
    return base_max(base_min(newest[0], LEVEL_WINDOWS), NEWEST);
}

static void team_now(const struct tun_adapt *a, const struct tun_watch *w, struct tun_team_now *t)
{
    size_t samples = base_min(w->detect.count, windows_of(a, w->kind));

    *t = (struct tun_team_now){.stage = w->stage,
                               .group = w->group,
                               .level = tun_detect_level(&w->detect, samples),
                               .waiting = tun_waiting(w),
                               .firm = w->settle_left == 0 && tun_detect_firm(&w->detect),
                               .light = light(a, w)};
    if (t->level < 0 && !shows(a, w)) {
        t->level = 0;
    }
    t->level = base_max(-20.0, base_min(20.0, t->level));
    t->sigma = samples ? MEDIAN_ERROR * w->detect.sigma *
                             sqrt(w->detect.omega / (double)base_min(samples, TUN_DETECT_RING))
                       : 1;
    if (w->settle_left > 0 && samples < 3) {
        t->level = 0;
        t->sigma = 1;
    }
}

static int make_record(struct tun_adapt *a, unsigned events, struct tun_record *ret)
{
    size_t cells = a->problem.kind_count * a->problem.unit_count;
    base_cleanup(tun_record_deinit) struct tun_record r = TUN_RECORD_NULL;

    r.beta = malloc(a->problem.unit_count * sizeof(*r.beta));
    r.slow = malloc(cells * sizeof(*r.slow));
    r.teams = calloc(a->watch_count, sizeof(*r.teams));
    if (!r.beta || !r.slow || !r.teams || tun_problem_copy(&a->problem, &r.problem) < 0) {
        return -ENOMEM;
    }
    memcpy(r.beta, a->beta, a->problem.unit_count * sizeof(*r.beta));
    memcpy(r.slow, a->slow, cells * sizeof(*r.slow));
    if (events & TUN_EVENT_PROBE) {
        probe_factors(a, r.slow);
    }
    r.plan = a->plan;
    if (tun_kinds_same_clock(a, a->home_khz)) {
        r.home = a->home;
    }
    r.throttled = a->throttled;
    r.pressure = a->pressure;
    for (size_t k = 0; k < a->problem.kind_count; k++) {
        const struct tun_watched_kind *n = &a->kinds[k];

        r.kinds[k] = (struct tun_kind_now){.cores = n->cores,
                                           .khz_table = n->khz_table,
                                           .khz = n->khz,
                                           .khz_before = n->khz_decided,
                                           .governor_changed = n->governor_for > 0,
                                           .limit_changed = n->limit_for > 0,
                                           .thermal = n->thermal_for > 0,
                                           .contended = n->contended};
    }
    for (; r.team_count < a->watch_count; r.team_count++) {
        team_now(a, &a->watches[r.team_count], &r.teams[r.team_count]);
    }
    r.events = events;
    r.gain_min = a->options.gain_min;
    r.gain_urgent = tun_guard_urgent(&a->guard, &a->options);
    r.cooldown_left_s = tun_guard_left_s(&a->guard, &a->options);
    r.budget_left = a->guard.bucket;
    *ret = r;
    r = TUN_RECORD_NULL;
    return 0;
}

/* While a decision waits for the cool-down: has a level moved so far since that a plan may be
 * urgent now. */
static bool is_news(const struct tun_adapt *a)
{
    double urgent = tun_guard_urgent(&a->guard, &a->options);

    for (size_t i = 0; urgent > 0 && a->guard.bucket >= 1 && i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];
        double level = tun_detect_level(&w->detect, windows_of(a, w->kind));

        if (w->settle_left == 0 && tun_detect_firm(&w->detect) &&
            fabs(level - w->told_level) > log1p(urgent) / 2) {
            return true;
        }
    }
    return false;
}

/* Cores or a line asked; everything else waits for the guards, after having been told once. */
#define AT_ONCE (TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET | TUN_EVENT_POWER | TUN_EVENT_BUTTON)

static int ask(struct tun_adapt *a, struct tun_record *ret)
{
    bool guarded = tun_guard_left_s(&a->guard, &a->options) > 0 || a->guard.bucket < 1;
    unsigned events = a->events;
    int error;

    a->told = a->told && guarded;
    if (!guarded) {
        events |= a->deferred;
        a->deferred = 0;
    }
    if ((events & AT_ONCE) == 0) {
        bool probe = time_to_probe(a);

        if (!any_firm(a) && !disagrees(a) && !tun_kinds_clock_moved(a) && !probe) {
            return TUN_ADAPT_NOTHING;
        }
        events |= probe ? TUN_EVENT_PROBE : 0;
    }
    if (guarded && a->told && (events & AT_ONCE) == 0 && !is_news(a)) {
        return TUN_ADAPT_NOTHING;
    }
    error = make_record(a, events, ret);
    if (error) {
        return error;
    }
    a->pending = true;
    a->events = 0;
    return TUN_ADAPT_DECIDE;
}

static double feel(double before, double share)
{
    return share >= 0 && share <= 1 ? before + LATE * (share - before) : before;
}

int tun_adapt_observe(struct tun_adapt *a, const struct tun_seen_window *w, struct tun_record *ret)
{
    bool back = tun_guard_time(&a->guard, &a->options, w->now_ns);

    if (!a->serving) {
        return TUN_ADAPT_NOTHING;
    }
    a->events |= w->events & ~(unsigned)(TUN_EVENT_INPUT | TUN_EVENT_PROBE);
    a->events |= tun_kinds_see(a, w);
    a->throttled = feel(a->throttled, w->throttled);
    a->pressure = feel(a->pressure, w->pressure);
    if (w->events & TUN_EVENT_INPUT) {
        for (size_t i = 0; i < a->watch_count; i++) {
            tun_detect_rebase(&a->watches[i].detect, a->watches[i].detect.base);
            watch_settle(a, &a->watches[i]);
            a->watches[i].voided = true;
        }
    } else if (!back) {
        see_teams(a, w);
    }
    if (a->pending) {
        return TUN_ADAPT_NOTHING;
    }
    if (verify(a)) {
        a->pending = true;
        return TUN_ADAPT_BACK;
    }
    return ask(a, ret);
}

/* What was decided on is how things are; levels that led to no change are where the teams stand. */
static void accept(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d)
{
    for (size_t k = 0; k < a->problem.kind_count; k++) {
        a->kinds[k].khz_decided = r->kinds[k].khz;
        a->kinds[k].cores_decided = r->kinds[k].cores;
    }
    for (size_t i = 0; i < r->team_count && i < a->watch_count; i++) {
        if (r->teams[i].firm) {
            tun_detect_rebase(&a->watches[i].detect, r->teams[i].level);
        }
    }
    a->disagrees = false;
    if (!tun_kinds_cores_moved(a)) { /* seen again while the decision was made */
        a->events &= ~(unsigned)(TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET);
    }
    if ((r->events & TUN_EVENT_PROBE) || d->tentative) {
        a->probes++;
        a->probe_at_ns = a->guard.clock_ns + (a->options.probe_ns << base_min(a->probes, 10u));
    }
}

/* @contention: something is in the way of what is slowed; else what is was so before. */
static void note_slowed(struct tun_adapt *a, bool contention)
{
    for (size_t k = 0; k < a->problem.kind_count; k++) {
        double most = 1;

        for (size_t u = 0; u < a->problem.unit_count; u++) {
            most = base_max(most, a->slow[k * a->problem.unit_count + u]);
        }
        a->kinds[k].slowed = most > SLOWED;
        a->kinds[k].contended = a->kinds[k].slowed && (a->kinds[k].contended || contention);
    }
}

/* The factors of @d hold for the plan that serves on: what is expected is another, what is measured
 * is the same. */
static void set_free(struct tun_adapt *a, const struct tun_decision *d)
{
    memcpy(a->slow, d->slow, a->problem.kind_count * a->problem.unit_count * sizeof(*a->slow));
    for (size_t i = 0; i < a->watch_count; i++) {
        struct tun_watch *w = &a->watches[i];
        double before = w->expected_ns;

        tun_watch_expect(a, w);
        w->detect.base += log(before / w->expected_ns);
    }
    note_slowed(a, false);
}

static int change_plan(struct tun_adapt *a, const struct pl_plan *plan, enum tun_why why)
{
    int error;

    a->before = a->plan;
    a->plan = *plan;
    if (tun_guard_calm(&a->guard, &a->options) && why != TUN_WHY_PROBE) {
        a->probes = 0;
    }
    tun_guard_change(&a->guard, &a->options, &a->before, plan, why);
    error = watch_plan(a);
    a->serving = error == 0;
    return error;
}

int tun_adapt_decided(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d,
                      bool switched, uint64_t now_ns)
{
    int error;

    tun_guard_time(&a->guard, &a->options, now_ns);
    a->pending = false;
    if (!d || (d->replan && !switched) || d->hold == TUN_HOLD_COOLDOWN ||
        d->hold == TUN_HOLD_BUDGET) {
        a->told = true;
        for (size_t i = 0; i < r->team_count && i < a->watch_count; i++) {
            a->watches[i].told_level = r->teams[i].level;
        }
        a->deferred |= r->events & AT_ONCE;
        if (d && d->replan) { /* it could not be switched to: not again at once */
            a->guard.changed = true;
            a->guard.changed_ns = a->guard.clock_ns;
        }
        for (size_t k = 0; k < a->problem.kind_count; k++) {
            a->kinds[k].cores_decided = r->kinds[k].cores;
        }
        return 0;
    }
    accept(a, r, d);
    if (!d->replan) {
        if (d->released) {
            set_free(a, d);
        }
        return 0;
    }
    a->probing = (r->events & TUN_EVENT_PROBE) != 0 || d->tentative;
    memcpy(a->slow_before, a->slow,
           a->problem.kind_count * a->problem.unit_count * sizeof(*a->slow));
    memcpy(a->slow, d->slow, a->problem.kind_count * a->problem.unit_count * sizeof(*a->slow));
    a->before_ns = d->before_ns;
    a->after_ns = d->after_ns;
    a->verify_left = VERIFY_WINDOWS;
    note_slowed(a, d->cause == TUN_CAUSE_CONTENTION);
    error = change_plan(a, &d->plan,
                        a->probing ? TUN_WHY_PROBE
                        : d->cause == TUN_CAUSE_CONTENTION || d->cause == TUN_CAUSE_THROUGHPUT
                            ? TUN_WHY_FELT
                            : TUN_WHY_KNOWN);
    if (error == 0 && !any_slow(a)) {
        a->returned = d->released && pl_plan_equal(&a->plan, &a->home);
        note_home(a);
    }
    return error;
}

const struct pl_plan *tun_adapt_before(const struct tun_adapt *a)
{
    return &a->before;
}

/* What the plan showed stays in the table, so that it is not chosen again at once. */
static void keep_levels(struct tun_adapt *a)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        for (size_t u = a->plan.stages[w->stage].first_unit;
             u <= a->plan.stages[w->stage].last_unit; u++) {
            double *slow = &a->slow[w->kind * a->problem.unit_count + u];

            *slow = base_max(1e-6, base_min(1e6, *slow * exp(w->detect.base)));
        }
    }
}

int tun_adapt_went_back(struct tun_adapt *a, bool switched, uint64_t now_ns)
{
    struct pl_plan to = a->before;
    bool probing = a->probing;

    tun_guard_time(&a->guard, &a->options, now_ns);
    a->pending = false;
    a->disagrees = false;
    if (!switched) {
        return 0;
    }
    a->probing = false;
    if (probing) { /* the kind is not free yet */
        memcpy(a->slow, a->slow_before,
               a->problem.kind_count * a->problem.unit_count * sizeof(*a->slow));
    } else {
        keep_levels(a);
    }
    note_slowed(a, probing);
    return change_plan(a, &to, probing ? TUN_WHY_PROBE : TUN_WHY_FAILED);
}

bool tun_adapt_watch(const struct tun_adapt *a, size_t index, struct tun_watch_view *ret)
{
    const struct tun_watch *w;

    if (!a->serving || index >= a->watch_count) {
        return false;
    }
    w = &a->watches[index];
    *ret = (struct tun_watch_view){.stage = w->stage,
                                   .group = w->group,
                                   .expected_ns = w->expected_ns,
                                   .sigma = w->detect.sigma,
                                   .change = tun_detect_state(&w->detect),
                                   .firm = tun_detect_firm(&w->detect),
                                   .settled = w->settle_left == 0};
    ret->level = tun_detect_level(
        &w->detect, base_max(tun_detect_change(&w->detect, &ret->since_ns), (size_t)3));
    return true;
}

uint64_t tun_adapt_cooldown_ns(const struct tun_adapt *a)
{
    return tun_guard_cooldown_ns(&a->guard, &a->options);
}

double tun_adapt_beta(const struct tun_adapt *a, size_t unit)
{
    return unit < a->beta_count ? a->beta[unit] : TUN_BETA_UNKNOWN;
}
