/* SPDX-License-Identifier: Apache-2.0 */
/* The cost table as it is now. */
#include <math.h>
#include <string.h>

#include "base.h"
#include "tuner/decide.h"
#include "tuner/learn.h"

double tun_beta_default(const struct tun_unit *u)
{
    double moved = u->gemm_n * u->gemm_k + u->gemm_k * u->gemm_m + u->gemm_n * u->gemm_m;
    double flops_per_byte = 2 * u->gemm_n * u->gemm_k * u->gemm_m / (4 * moved);

    if (!(moved > 0) || !isfinite(flops_per_byte)) {
        return TUN_BETA_UNKNOWN;
    }
    return flops_per_byte / (flops_per_byte + TUN_BETA_HALF);
}

double tun_clock_factor(const struct tun_kind_now *k, double beta)
{
    return k->khz > 0 && k->khz_table > 0 ? pow(k->khz_table / k->khz, beta) : 1;
}

/* Kinds with a core, as the present table's kinds. */
static size_t kinds_there(const struct tun_record *r, struct tun_kind *ret, size_t *ret_from)
{
    size_t count = 0;

    for (size_t k = 0; k < r->problem.kind_count; k++) {
        if (r->kinds[k].cores > 0) {
            ret[count] = r->problem.kinds[k];
            ret[count].cores = r->kinds[k].cores;
            ret_from[count++] = k;
        }
    }
    return count;
}

static void correct_kind(const struct tun_record *r, const double *slow, size_t from,
                         struct tun_problem *p, size_t to)
{
    size_t widths = base_min(p->kinds[to].cores, r->problem.kinds[from].cores);

    for (size_t u = 0; u < p->unit_count; u++) {
        double factor =
            slow[from * p->unit_count + u] * tun_clock_factor(&r->kinds[from], r->beta[u]);

        for (size_t w = 1; w <= widths; w++) {
            struct tun_cell *cell = tun_cell_at(&p->costs, to, w, u);

            *cell = *tun_cell_at(&r->problem.costs, from, w, u);
            cell->ns *= cell->ns > 0 ? factor : 1;
        }
    }
}

int tun_correct(const struct tun_record *r, const double *slow, struct tun_problem *ret,
                size_t *ret_kinds)
{
    struct tun_kind kinds[PL_EP_MAX];
    struct tun_problem p;
    size_t count = kinds_there(r, kinds, ret_kinds);
    int error;

    error = count ? tun_problem_init(&p, r->problem.unit_count, kinds, count) : -EINVAL;
    if (error) {
        return error;
    }
    memcpy(p.units, r->problem.units, p.unit_count * sizeof(*p.units));
    p.handoff_ns = r->problem.handoff_ns;
    p.handoff_ns_per_byte = r->problem.handoff_ns_per_byte;
    p.objective = r->problem.objective;
    p.bounds = r->problem.bounds;
    for (size_t k = 0; k < count; k++) {
        correct_kind(r, slow, ret_kinds[k], &p, k);
    }
    tun_fill(&p);
    *ret = p;
    return 0;
}

static int say(char ret_error[TUN_ERROR_MAX], const char *text)
{
    size_t length = base_min(strlen(text), (size_t)TUN_ERROR_MAX - 1);

    memcpy(ret_error, text, length);
    ret_error[length] = '\0';
    return -EINVAL;
}

static bool within(double x, double least, double most)
{
    return x >= least && x <= most;
}

static bool kind_sane(const struct tun_kind_now *k)
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
            return say(ret_error, "a unit's compute-boundness is not within 0 and 1");
        }
    }
    for (size_t i = 0; i < p->kind_count * p->unit_count; i++) {
        if (!within(r->slow[i], 1e-6, 1e6)) {
            return say(ret_error, "a factor is not within 1e-6 and 1e6");
        }
    }
    for (size_t k = 0; k < p->kind_count; k++) {
        if (!kind_sane(&r->kinds[k])) {
            return say(ret_error, "a kind's cores or frequencies are out of range");
        }
    }
    for (size_t t = 0; t < r->team_count; t++) {
        if (!team_sane(r, &r->teams[t])) {
            return say(ret_error, "a team is none of the plan's, or its figures are out of range");
        }
    }
    if (!within(r->throttled, 0, 1) || !within(r->pressure, 0, 1)) {
        return say(ret_error, "throttled and pressure are shares from 0 to 1");
    }
    if (!within(r->gain_min, 0, 10) || !within(r->gain_urgent, 0, 10) ||
        !(r->cooldown_left_s >= 0) || !(r->budget_left >= 0)) {
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
