/* SPDX-License-Identifier: Apache-2.0 */
/* A watch from its beginning to its end, and a window of it. */
#include "tuner/adapt/adapt.h"

#include "base/base.h"
#include "tuner/adapt/adapt_state.h"

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
    a->guard.bucket = options.hourly;
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

static int take_problem(struct tun_adapt *a, const struct tun_problem *p)
{
    size_t cells = p->ep_count * p->unit_count;
    struct tun_problem copy;
    base_autofree double *slow = malloc(cells * sizeof(*slow));
    base_autofree double *before = malloc(cells * sizeof(*before));
    base_autofree double *beta = malloc(p->unit_count * sizeof(*beta));
    int error = slow && beta && before ? tun_problem_copy(p, &copy) : -ENOMEM;

    if (error) {
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
    a->slow = base_take(slow);
    a->slow_before = base_take(before);
    a->beta = base_take(beta);
    a->beta_count = p->unit_count;
    return 0;
}

static bool is_plan(const struct tun_problem *p, const struct pl_plan *plan)
{
    char why[TUN_ERROR_MAX];
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    return pl_plan_check(plan, &eps, p->unit_count, why, sizeof(why)) == 0;
}

int tun_adapt_serve(struct tun_adapt *a, const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_ep_seen *eps, uint64_t now_ns)
{
    char why[TUN_ERROR_MAX];
    int error;

    a->serving = false;
    if (tun_problem_check(p, why) < 0 || !is_plan(p, plan)) {
        return -EINVAL;
    }
    error = take_problem(a, p);
    if (error) {
        return error;
    }
    a->plan = *plan;
    tun_guard_time(&a->guard, &a->options, now_ns);
    tun_eps_start(a, eps);
    tun_decided_home(a);
    a->pending = a->told = a->probing = false;
    a->verify_left = a->events = a->deferred = a->probes = 0;
    a->felt = (struct tun_felt){0};
    error = tun_watch_plan(a);
    a->serving = error == 0;
    return error;
}

static double feel(double before, double share)
{
    return share >= 0 && share <= 1 ? before + LATE * (share - before) : before;
}

int tun_adapt_observe(struct tun_adapt *a, const struct tun_seen_window *w, struct tun_record *ret)
{
    bool back = tun_guard_time(&a->guard, &a->options, w->now_ns);
    int asked;

    if (!a->serving) {
        return TUN_ADAPT_NOTHING;
    }
    a->events |= w->events & ~(unsigned)(TUN_EVENT_INPUT | TUN_EVENT_PROBE);
    a->events |= tun_eps_see(a, w);
    a->hold_ns = w->hold_ns;
    a->felt.throttled = feel(a->felt.throttled, w->felt.throttled);
    a->felt.pressure = feel(a->felt.pressure, w->felt.pressure);
    if (w->events & TUN_EVENT_INPUT) {
        tun_watch_void(a);
    } else if (!back) {
        tun_watch_see(a, w);
        tun_eps_learn(a);
    }
    if (a->pending) {
        return TUN_ADAPT_NOTHING;
    }
    if (tun_decided_failed(a)) {
        a->pending = true;
        return TUN_ADAPT_BACK;
    }
    asked = tun_ask(a, ret);
    return asked == TUN_ASK_DECIDE ? TUN_ADAPT_DECIDE : asked;
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

bool tun_adapt_verifying(const struct tun_adapt *a)
{
    return a->serving && a->verify_left > 0;
}

uint64_t tun_adapt_cooldown_ns(const struct tun_adapt *a)
{
    return tun_guard_cooldown_ns(&a->guard, &a->options);
}

/* ---- other options, other cores, other costs ---- */

int tun_adapt_set_options(struct tun_adapt *a, const struct tun_adapt_options *o)
{
    if (!options_sane(o)) {
        return -EINVAL;
    }
    a->options = *o;
    a->guard.bucket = base_min(a->guard.bucket, a->options.hourly);
    a->guard.backoff = base_min(a->guard.backoff, a->options.backoff_most);
    for (size_t i = 0; i < a->watch_count; i++) {
        struct tun_watch *w = &a->watches[i];

        w->detect.options = a->options.detect;
        w->settle_left = base_min(w->settle_left, a->options.settle);
    }
    return 0;
}

double tun_adapt_slow(const struct tun_adapt *a, size_t ep, size_t unit, bool *ret_contended)
{
    if (!a->serving || ep >= a->problem.ep_count || unit >= a->problem.unit_count) {
        *ret_contended = false;
        return 1;
    }
    *ret_contended = a->eps[ep].contended;
    return a->slow[ep * a->problem.unit_count + unit];
}

int tun_adapt_costs(const struct tun_adapt *a, struct tun_problem *ret)
{
    size_t units = a->problem.unit_count;
    bool other = false;

    if (!a->serving) {
        return 0;
    }
    if (tun_problem_copy(&a->problem, ret) < 0) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < a->problem.ep_count * units; i++) {
        const struct tun_ep_now now = {.khz = a->eps[i / units].khz,
                                       .khz_table = a->eps[i / units].khz_table};
        bool moved = tun_clock_moved(now.khz, now.khz_table);
        double by = a->slow[i] * (moved ? tun_clock_factor(&now, a->beta[i % units]) : 1);

        other |= by != 1;
        tun_unit_scale(ret, i / units, i % units, by);
    }
    if (!other) {
        tun_problem_deinit(ret);
    }
    return other;
}

void tun_adapt_resume(struct tun_adapt *a, const double *slow, const bool *contended)
{
    if (!a->serving) {
        return;
    }
    for (size_t k = 0; k < a->problem.ep_count; k++) {
        a->eps[k].contended = contended[k];
    }
    memcpy(a->slow, slow, a->problem.ep_count * a->problem.unit_count * sizeof(*slow));
    tun_eps_note_slowed(a, false);
    for (size_t i = 0; i < a->watch_count; i++) {
        tun_watch_expect(a, &a->watches[i]);
    }
}

/* Return: the table of @a can become that of @p. */
static bool same_machine(const struct tun_adapt *a, const struct tun_problem *p)
{
    double khz[PL_EP_MAX];
    bool same =
        a->serving && p->ep_count == a->problem.ep_count && p->unit_count == a->problem.unit_count;

    for (size_t k = 0; same && k < p->ep_count; k++) {
        khz[k] = a->eps[k].khz_table;
        same = p->eps[k].cores == a->problem.eps[k].cores && !a->eps[k].slowed;
    }
    return same && tun_eps_same_clock(a, khz);
}

int tun_adapt_learned(struct tun_adapt *a, const struct tun_problem *p)
{
    struct tun_problem copy;

    if (!same_machine(a, p)) {
        return -EINVAL;
    }
    if (tun_problem_copy(p, &copy) < 0) {
        return -ENOMEM;
    }
    tun_problem_deinit(&a->problem);
    a->problem = copy;
    for (size_t i = 0; i < a->watch_count; i++) {
        tun_watch_renew(a, &a->watches[i]);
    }
    return 0;
}

void tun_adapt_changed(struct tun_adapt *a, uint64_t now_ns)
{
    tun_guard_time(&a->guard, &a->options, now_ns);
    tun_guard_rest(&a->guard);
}

int tun_adapt_verify(struct tun_adapt *a, const struct pl_plan *before, double before_ns,
                     double after_ns)
{
    if (!a->serving || !(before_ns > 0) || !(after_ns > 0) || !is_plan(&a->problem, before)) {
        return -EINVAL;
    }
    a->before = *before;
    a->before_ns = before_ns;
    a->after_ns = after_ns;
    a->verify_left = VERIFY_WINDOWS;
    return 0;
}
