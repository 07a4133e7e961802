/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/decision_record.h"

#include "base/base.h"

static int say(char ret_error[TUN_ERROR_MAX], const char *text)
{
    snprintf(ret_error, TUN_ERROR_MAX, "%s", text);
    return -EINVAL;
}

static bool within(double x, double least, double most)
{
    return x >= least && x <= most;
}

static bool ep_sane(const struct tun_ep_now *k)
{
    return k->cores <= PL_CPU_MAX && within(k->khz_table, 0, 1e9) && within(k->khz, 0, 1e9) &&
           within(k->khz_before, 0, 1e9);
}

static bool team_sane(const struct tun_record *r, const struct tun_team_now *t)
{
    return t->stage < r->plan.stage_count && t->group < r->plan.stages[t->stage].group_count &&
           within(t->level, -20, 20) && within(t->sigma, 0, 20) &&
           (isnan(t->waiting) || within(t->waiting, -1, 1));
}

int tun_record_check(const struct tun_record *r, char ret_error[TUN_ERROR_MAX])
{
    const struct tun_problem *p = &r->problem;
    struct pl_ep_set eps;

    if (tun_problem_check(p, ret_error) < 0) {
        return -EINVAL;
    }
    tun_eps(p, &eps);
    if (pl_plan_check(&r->plan, &eps, p->unit_count, ret_error, TUN_ERROR_MAX) < 0) {
        return -EINVAL;
    }
    if (r->home.stage_count > 0 &&
        pl_plan_check(&r->home, &eps, p->unit_count, ret_error, TUN_ERROR_MAX) < 0) {
        return -EINVAL;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        if (!within(r->beta[u], 0, 1)) {
            return say(ret_error, "a unit's compute-boundness is not between 0 and 1");
        }
    }
    for (size_t i = 0; i < p->ep_count * p->unit_count; i++) {
        if (!within(r->slow[i], 1e-6, 1e6)) {
            return say(ret_error, "a factor is not between 1e-6 and 1e6");
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        if (!ep_sane(&r->eps[k])) {
            return say(ret_error, "the cores or frequencies of an EP are out of range");
        }
    }
    for (size_t t = 0; t < r->team_count; t++) {
        if (!team_sane(r, &r->teams[t])) {
            return say(ret_error, "a team is not in the plan, or its figures are out of range");
        }
    }
    if (!within(r->felt.throttled, 0, 1) || !within(r->felt.pressure, 0, 1)) {
        return say(ret_error, "throttled and pressure are shares from 0 to 1");
    }
    if (!within(r->gain_min, 0, 10) || !within(r->gain_urgent, 0, 10) ||
        !(r->cooldown_left_s >= 0) || !(r->budget_left >= 0) || !(r->measured_ns >= 0)) {
        return say(ret_error, "a guard's figure is out of range");
    }
    return 0;
}

void tun_record_deinit(struct tun_record *r)
{
    tun_problem_deinit(&r->problem);
    free(r->beta);
    free(r->slow);
    free(r->teams);
    *r = TUN_RECORD_NULL;
}
