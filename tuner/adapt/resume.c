/* SPDX-License-Identifier: Apache-2.0 */
/* A watch that goes on under other options, on other cores, or with other costs. */
#include "tuner/adapt/resume.h"

#include "base/base.h"
#include "tuner/adapt/adapt_state.h"

int tun_adapt_set_options(struct tun_adapt *a, const struct tun_adapt_options *o)
{
    struct tun_adapt *checked;
    int error = tun_adapt_new(o, &checked);

    if (error) {
        return error;
    }
    a->options = checked->options;
    a->guard.bucket = base_min(a->guard.bucket, a->options.hourly);
    a->guard.backoff = base_min(a->guard.backoff, a->options.backoff_most);
    for (size_t i = 0; i < a->watch_count; i++) {
        struct tun_watch *w = &a->watches[i];

        w->detect.options = a->options.detect;
        w->settle_left = base_min(w->settle_left, a->options.settle);
    }
    tun_adapt_free(checked);
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
    char why[TUN_ERROR_MAX];
    struct pl_ep_set eps;

    tun_eps(&a->problem, &eps);
    if (!a->serving || !(before_ns > 0) || !(after_ns > 0) ||
        pl_plan_check(before, &eps, a->problem.unit_count, why, sizeof(why)) < 0) {
        return -EINVAL;
    }
    a->before = *before;
    a->before_ns = before_ns;
    a->after_ns = after_ns;
    a->verify_left = VERIFY_WINDOWS;
    return 0;
}
