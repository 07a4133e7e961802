/* SPDX-License-Identifier: Apache-2.0 */
/* A watch from its beginning to its end, and a window of it. */
#include "tuner/adapt/adapt.h"

#include "base/base.h"
#include "tuner/adapt/adapt_state.h"
#include "tuner/adapt/correct.h"
#include "tuner/adapt/decided.h"

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

static int take_problem(struct tun_adapt *a, const struct tun_problem *p)
{
    size_t cells = p->ep_count * p->unit_count;
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

int tun_adapt_serve(struct tun_adapt *a, const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_ep_seen *eps, uint64_t now_ns)
{
    char why[TUN_ERROR_MAX];
    struct pl_ep_set set;
    int error;

    a->serving = false;
    if (tun_problem_check(p, why) < 0) {
        return -EINVAL;
    }
    tun_eps(p, &set);
    if (pl_plan_check(plan, &set, p->unit_count, why, sizeof(why)) < 0) {
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
