/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/adapt/decision_record.h"

#include "base/base.h"
#include "tuner/learn.h"
#include "tuner/span.h"

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

/* ---- the cost table as it is now ---- */

double tun_beta_default(const struct tun_unit *u)
{
    double image = u->gemm_n * (u->layer == TUN_DEPTHWISE ? u->gemm_m : u->gemm_k);
    double moved = image + u->gemm_k * u->gemm_m + u->gemm_n * u->gemm_m;
    double flops_per_byte = 2 * u->gemm_n * u->gemm_k * u->gemm_m / (4 * moved);

    if (!(moved > 0) || !isfinite(flops_per_byte)) {
        return TUN_BETA_UNKNOWN;
    }
    return flops_per_byte / (flops_per_byte + TUN_BETA_HALF);
}

double tun_clock_factor(const struct tun_ep_now *k, double beta)
{
    return k->khz > 0 && k->khz_table > 0 ? pow(k->khz_table / k->khz, beta) : 1;
}

/* EPs with a core, as the present table's EPs. */
static size_t eps_there(const struct tun_record *r, struct tun_ep *ret, size_t *ret_from)
{
    size_t count = 0;

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        if (r->eps[k].cores > 0) {
            ret[count] = r->problem.eps[k];
            ret[count].cores = r->eps[k].cores;
            ret_from[count++] = k;
        }
    }
    return count;
}

size_t tun_width_of(const struct pl_plan *plan, size_t ep, size_t unit)
{
    size_t widest = 1;

    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];

        for (size_t g = 0; g < stage->group_count; g++) {
            const struct pl_group *group = &stage->groups[g];

            if (group->ep == ep && stage->first_unit <= unit && unit <= stage->last_unit) {
                return group->width;
            }
            widest = group->ep == ep ? base_max(widest, (size_t)group->width) : widest;
        }
    }
    return widest;
}

double tun_share_factor(double slow, size_t from_width, size_t to_width)
{
    return slow > 1 ? pow(slow, (double)to_width / (double)from_width) : slow;
}

static void correct_ep(const struct tun_record *r, const double *slow, bool shared, size_t from,
                       struct tun_problem *p, size_t to)
{
    size_t widths = base_min(p->eps[to].cores, r->problem.eps[from].cores);

    for (size_t u = 0; u < p->unit_count; u++) {
        double factor = slow[from * p->unit_count + u];
        double clock = tun_clock_factor(&r->eps[from], r->beta[u]);
        size_t serving = tun_width_of(&r->plan, from, u);

        for (size_t w = 1; w <= widths; w++) {
            struct tun_cell *cell = tun_cell_at(&p->costs, to, w, u);

            *cell = *tun_cell_at(&r->problem.costs, from, w, u);
            if (cell->ns > 0) {
                cell->ns *= clock * (shared ? tun_share_factor(factor, serving, w) : factor);
            }
        }
    }
}

/* Teams over several EPs: what was learned of them, what they show now, and whose cores others
 * take. Which of its EPs is slow such a team cannot show. */
static int correct_spans(const struct tun_record *r, const double *slow, struct tun_problem *p,
                         const size_t *from)
{
    size_t to[PL_EP_MAX];
    int error;

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        to[k] = SIZE_MAX;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        to[from[k]] = k;
        for (size_t u = 0; u < p->unit_count; u++) {
            p->eps[k].held |= log(slow[from[k] * p->unit_count + u]) > TUN_FREE;
        }
    }
    error = tun_span_carry(&r->problem, to, p);
    for (size_t i = 0; error == 0 && i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];
        const struct pl_stage_plan *stage = &r->plan.stages[t->stage];
        struct pl_group group = stage->groups[t->group];
        bool there = pl_group_spans(&group) && tun_team_moved(t);

        for (size_t k = 0; k < r->problem.ep_count; k++) {
            there &= pl_group_on(&group, k) == 0 || to[k] < SIZE_MAX;
        }
        if (there) {
            pl_group_rename(&group, to);
            error = tun_span_scale(p, &group, stage->first_unit, stage->last_unit, exp(t->level));
        }
    }
    return error;
}

int tun_correct(const struct tun_record *r, const double *slow, const bool *shared,
                struct tun_problem *ret, size_t *ret_eps)
{
    struct tun_ep eps[PL_EP_MAX];
    struct tun_problem p;
    size_t count = eps_there(r, eps, ret_eps);
    int error;

    error = count ? tun_problem_init(&p, r->problem.unit_count, eps, count) : -EINVAL;
    if (error) {
        return error;
    }
    if (r->problem.at_once && !tun_problem_at_once(&p)) {
        tun_problem_deinit(&p);
        return -ENOMEM;
    }
    for (size_t k = 0; r->problem.at_once && k < count; k++) {
        memcpy(&p.at_once[k * p.unit_count], tun_at_once_at(&r->problem, ret_eps[k], 0),
               p.unit_count * sizeof(*p.at_once));
    }
    p.batch_wait_ns = r->problem.batch_wait_ns;
    memcpy(p.units, r->problem.units, p.unit_count * sizeof(*p.units));
    p.handoff_ns = r->problem.handoff_ns;
    p.handoff_ns_per_byte = r->problem.handoff_ns_per_byte;
    p.gbytes_max = r->problem.gbytes_max;
    p.objective = r->problem.objective;
    p.bounds = r->problem.bounds;
    for (size_t k = 0; k < count; k++) {
        correct_ep(r, slow, shared && shared[ret_eps[k]], ret_eps[k], &p, k);
    }
    error = correct_spans(r, slow, &p, ret_eps);
    if (error) {
        tun_problem_deinit(&p);
        return error;
    }
    tun_fill(&p);
    *ret = p;
    return 0;
}
