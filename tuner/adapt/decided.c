/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision leads to: factors and levels that hold from then on, another plan, and the way
 * back from it. */

#include "tuner/adapt/decided.h"
#include "base/base.h"
#include "tuner/adapt/adapt_state.h"

#define TABLE_ERROR 0.08 /* log of a factor that says nothing about the machine */

/* Return: a factor is above 1 by more than an error of the table. A factor below 1 is
 * always such an error. */
static bool any_slow(const struct tun_adapt *a)
{
    for (size_t i = 0; i < a->problem.ep_count * a->problem.unit_count; i++) {
        if (log(a->slow[i]) > TABLE_ERROR) {
            return true;
        }
    }
    return false;
}

void tun_decided_home(struct tun_adapt *a)
{
    a->home = a->plan;
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        a->home_khz[k] = a->eps[k].khz;
    }
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

bool tun_decided_failed(struct tun_adapt *a)
{
    double ns;

    if (a->verify_left == 0 || !measured_ns(a, &ns)) {
        a->verify_left -= a->verify_left > 0;
        return false;
    }
    a->verify_left = 0;
    return ns > a->after_ns * (1 + a->options.verify_margin) && ns > a->before_ns;
}

static bool is_probe(const struct tun_record *r, const struct tun_decision *d)
{
    return (r->events & TUN_EVENT_PROBE) != 0 || d->tentative;
}

/* The machine is now as the decision saw it; a level that led to no change becomes the base. */
static void accept(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        a->eps[k].khz_decided = r->eps[k].khz;
        a->eps[k].cores_decided = r->eps[k].cores;
    }
    for (size_t i = 0; i < r->team_count && i < a->watch_count; i++) {
        if (r->teams[i].firm) {
            tun_detect_rebase(&a->watches[i].detect, r->teams[i].level);
        }
    }
    a->disagrees = false;
    if (!tun_eps_cores_moved(a)) { /* seen again while the decision was made */
        a->events &= ~(unsigned)(TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET);
    }
    if (is_probe(r, d)) {
        a->probes++;
        a->probe_at_ns = a->guard.clock_ns + (a->options.probe_ns << base_min(a->probes, 10u));
    }
}

/* Makes factors of the plan @from those of @to. @shared: of each EP, by other programs. */
static void carry_slow(struct tun_adapt *a, const bool *shared, const struct pl_plan *from,
                       const struct pl_plan *to)
{
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        for (size_t u = 0; shared[k] && u < a->problem.unit_count; u++) {
            double *slow = &a->slow[k * a->problem.unit_count + u];

            *slow = tun_share_factor(*slow, tun_width_of(from, k, u), tun_width_of(to, k, u));
        }
    }
}

/* The serving plan goes on with the factors of @d: expected times change, measured ones do not. */
static void set_free(struct tun_adapt *a, const struct tun_decision *d)
{
    memcpy(a->slow, d->slow, a->problem.ep_count * a->problem.unit_count * sizeof(*a->slow));
    for (size_t i = 0; i < a->watch_count; i++) {
        tun_watch_renew(a, &a->watches[i]);
    }
    tun_eps_note_slowed(a, false);
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
    error = tun_watch_plan(a);
    a->serving = error == 0;
    return error;
}

void tun_decision_searched(struct tun_decision *d, const struct pl_plan *plan, bool replan,
                           double before_ns, double after_ns)
{
    d->plan = *plan;
    d->replan = replan;
    d->before_ns = before_ns;
    d->after_ns = after_ns;
}

static enum tun_why why_of(const struct tun_record *r, const struct tun_decision *d)
{
    return is_probe(r, d) ? TUN_WHY_PROBE : tun_cause_felt(d->cause) ? TUN_WHY_FELT : TUN_WHY_KNOWN;
}

bool tun_decision_returns(const struct tun_record *r, const struct tun_decision *d)
{
    return d->released && !is_probe(r, d) && pl_plan_equal(&d->plan, &r->home);
}

bool tun_adapt_lost(const struct tun_adapt *a, const struct tun_record *r,
                    const struct tun_decision *d)
{
    return !d->must && !is_probe(r, d) && !tun_decision_returns(r, d) &&
           d->corrected.ep_count == r->problem.ep_count &&
           tun_lost_has(&a->lost, &d->corrected, &r->plan, &d->plan);
}

void tun_adapt_proved(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d,
                      enum tun_verdict verdict)
{
    bool better = verdict == TUN_TURNS_BETTER;

    a->verify_left = 0;
    if ((better || verdict == TUN_TURNS_WORSE) && !is_probe(r, d) &&
        d->corrected.ep_count == r->problem.ep_count) {
        tun_lost_add(&a->lost, &d->corrected, better ? &d->plan : &r->plan,
                     better ? &r->plan : &d->plan);
    }
    if (!better) {
        tun_guard_lost(&a->guard);
    }
}

int tun_adapt_decided(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d,
                      bool switched, uint64_t now_ns)
{
    enum tun_why why;
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
            tun_guard_rest(&a->guard);
        }
        for (size_t k = 0; k < a->problem.ep_count; k++) {
            a->eps[k].cores_decided = r->eps[k].cores;
        }
        return 0;
    }
    accept(a, r, d);
    why = why_of(r, d);
    if (!d->replan && !d->search) {
        if (d->released) {
            set_free(a, d);
        }
        return 0;
    }
    /* a search that ends where it began counts as a change, and its plan settles anew */
    a->probing = d->replan && why == TUN_WHY_PROBE;
    memcpy(a->slow_before, a->slow, a->problem.ep_count * a->problem.unit_count * sizeof(*a->slow));
    memcpy(a->slow, d->slow, a->problem.ep_count * a->problem.unit_count * sizeof(*a->slow));
    carry_slow(a, d->shared, &r->plan, &d->plan);
    a->before_ns = d->before_ns;
    a->after_ns = d->after_ns;
    a->verify_left = d->replan ? VERIFY_WINDOWS : 0;
    tun_eps_note_slowed(a, tun_cause_felt(d->cause));
    error = change_plan(a, &d->plan, why);
    if (d->must && a->options.search) { /* the plan that fits is where a search begins */
        a->deferred |= r->events & AT_ONCE;
    }
    if (error == 0 && !any_slow(a)) {
        a->returned = d->released && pl_plan_equal(&a->plan, &a->home);
        tun_decided_home(a);
    }
    return error;
}

const struct pl_plan *tun_adapt_before(const struct tun_adapt *a)
{
    return &a->before;
}

/* Keeps what the plan showed in the factors, so that it is not chosen again at once. */
static void keep_levels(struct tun_adapt *a)
{
    for (size_t i = 0; i < a->watch_count; i++) {
        const struct tun_watch *w = &a->watches[i];

        for (size_t u = a->plan.stages[w->stage].first_unit;
             u <= a->plan.stages[w->stage].last_unit; u++) {
            double *slow = &a->slow[w->ep * a->problem.unit_count + u];

            *slow = base_max(1e-6, base_min(1e6, *slow * exp(w->detect.base)));
        }
    }
}

int tun_adapt_went_back(struct tun_adapt *a, bool switched, uint64_t now_ns)
{
    struct pl_plan to = a->before;
    bool probing = a->probing, shared[PL_EP_MAX];

    tun_guard_time(&a->guard, &a->options, now_ns);
    a->pending = false;
    a->disagrees = false;
    if (!switched) {
        return 0;
    }
    a->probing = false;
    if (probing) { /* the EP is not free yet */
        memcpy(a->slow, a->slow_before,
               a->problem.ep_count * a->problem.unit_count * sizeof(*a->slow));
    } else if (!a->options.search) {
        keep_levels(a);
        for (size_t k = 0; k < a->problem.ep_count; k++) {
            shared[k] = a->eps[k].contended;
        }
        carry_slow(a, shared, &a->plan, &to);
    }
    tun_eps_note_slowed(a, probing);
    return change_plan(a, &to, probing ? TUN_WHY_PROBE : TUN_WHY_FAILED);
}
