/* SPDX-License-Identifier: Apache-2.0 */
/* When to ask for a decision, and the record that it is made from. */

#include "base/base.h"
#include "tuner/adapt/adapt_state.h"

#define NEWEST ((size_t)3)         /* windows whose median a single spike does not move */
#define LEVEL_WINDOWS ((size_t)25) /* that say where a quiet team stands */
#define MEDIAN_ERROR 1.25          /* standard error of a median over that of a mean */

/* Is what is left of the EP more than the team asks for. */
static bool light(const struct tun_adapt *a, const struct tun_watch *w)
{
    return a->eps[w->ep].contended && w->busy > 0 && w->busy < 1 / tun_eps_slow(a, w->ep);
}

/* Does a light team show that its EP may be free: it got faster just now, or probe_ns are over. */
static bool shows(const struct tun_adapt *a, const struct tun_watch *w)
{
    return !light(a, w) || tun_detect_state(&w->detect) == TUN_FASTER ||
           (a->options.probe_ns > 0 && a->guard.clock_ns >= a->probe_at_ns);
}

/* Has the team been on one side of its level for as long as the back-off and the caller ask. */
static bool stands(const struct tun_adapt *a, const struct tun_watch *w, enum tun_change side)
{
    uint64_t hold_ns =
        base_max(tun_guard_hold_ns(&a->guard, &a->options), side == TUN_SLOWER ? a->hold_ns : 0);

    return hold_ns == 0 || (w->side == side && a->guard.clock_ns > w->side_ns &&
                            a->guard.clock_ns - w->side_ns >= hold_ns);
}

static bool any_firm(const struct tun_adapt *a)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        if (w->settle_left == 0 && a->eps[w->ep].learn_left == 0 && tun_detect_firm(&w->detect) &&
            stands(a, w, tun_detect_state(&w->detect))) {
            return true;
        }
    }
    return false;
}

/* Does the settled plan differ from its prediction. A plan under verification does not count. */
static bool disagrees(const struct tun_adapt *a)
{
    for (size_t i = 0; a->disagrees && a->verify_left == 0 && i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        if (w->settle_left == 0 && fabs(w->detect.base) > tun_watch_surprise(a) &&
            stands(a, w, TUN_SAME) && (w->detect.base > 0 || shows(a, w))) {
            return true;
        }
    }
    return false;
}

static bool time_to_probe(const struct tun_adapt *a)
{
    for (size_t k = 0; a->options.probe_ns > 0 && k < a->problem.ep_count; k++) {
        if (a->eps[k].slowed && !a->eps[k].used && a->eps[k].cores > 0 &&
            a->guard.clock_ns >= a->probe_at_ns) {
            return true;
        }
    }
    return false;
}

static void probe_factors(const struct tun_adapt *a, double *slow)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        for (size_t u = 0; u < a->problem.unit_count; u++) {
            if (a->eps[k].slowed && !a->eps[k].used) {
                slow[k * a->problem.unit_count + u] = 1;
            }
        }
    }
}

/* Windows that say where the EP's teams stand: those since the newest change that a team saw,
 * firm ones first. */
static size_t windows_of(const struct tun_adapt *a, size_t ep)
{
    size_t newest[2] = {SIZE_MAX, SIZE_MAX}; /* of alarms, of firm ones */

    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_detect *d = &a->watches[i].detect;
        size_t windows = tun_detect_change(d, NULL);

        if (a->watches[i].ep == ep && a->watches[i].settle_left == 0 && windows > 0) {
            size_t *which = &newest[tun_detect_firm(d)];

            *which = base_min(*which, windows);
        }
    }
    newest[0] = newest[1] < SIZE_MAX ? newest[1] : newest[0];
    return base_max(base_min(newest[0], LEVEL_WINDOWS), NEWEST);
}

static void team_now(const struct tun_adapt *a, const struct tun_watch *w, struct tun_team_now *t)
{
    size_t samples = base_min(w->detect.count, windows_of(a, w->ep));

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
    size_t cells = a->problem.ep_count * a->problem.unit_count;
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
    if (tun_eps_same_clock(a, a->home_khz)) {
        r.home = a->home;
    }
    r.felt = a->felt;
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        const struct tun_watched_ep *n = &a->eps[k];

        r.eps[k] = (struct tun_ep_now){.cores = n->cores,
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
    r.search = a->options.search;
    *ret = r;
    r = TUN_RECORD_NULL;
    return 0;
}

/* While a decision waits for the cool-down: has a level moved far enough since to make a plan
 * urgent. */
static bool is_news(const struct tun_adapt *a)
{
    double urgent = tun_guard_urgent(&a->guard, &a->options);

    for (size_t i = 0; urgent > 0 && a->guard.bucket >= 1 && i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];
        double level = tun_detect_level(&w->detect, windows_of(a, w->ep));

        if (w->settle_left == 0 && tun_detect_firm(&w->detect) &&
            fabs(level - w->told_level) > log1p(urgent) / 2) {
            return true;
        }
    }
    return false;
}

int tun_ask(struct tun_adapt *a, struct tun_record *ret)
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

        if (!any_firm(a) && !disagrees(a) && !tun_eps_clock_moved(a) && !probe) {
            return 0;
        }
        events |= probe ? TUN_EVENT_PROBE : 0;
    }
    if (guarded && a->told && (events & AT_ONCE) == 0 && !is_news(a)) {
        return 0;
    }
    error = make_record(a, events, ret);
    if (error) {
        return error;
    }
    a->pending = true;
    a->events = 0;
    return TUN_ASK_DECIDE;
}
