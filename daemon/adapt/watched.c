/* SPDX-License-Identifier: Apache-2.0 */
/* What adaptation knows of one model: whether it may act on it, and what it reports to plans/. */
#include "daemon/adapt/adapter_private.h"

/* Plans closer than this are equally good: two measurements of one plan differ by as much. */
#define NOISE 0.05
#define LOOK_NS BASE_NS_PER_S /* between two looks at the costs */

void dmn_adapt_leave_job(struct dmn_adapt_model *a)
{
    struct dmn_adapt_job *j = base_take(a->job);

    if (j) {
        dmn_job_leave(&j->work);
    }
}

bool dmn_adapt_searches(const struct dmn_model *m)
{
    return dmn_planner_searches(dmn_machine_config(m->of->machine)) &&
           !dmn_origin_pinned(m->origin);
}

bool dmn_together(const struct dmn_model *m)
{
    return m->origin.from == DMN_FROM_MIX && m->planning->of->mix != NULL;
}

bool dmn_adapt_free_to_act(const struct dmn_model *m)
{
    return !dmn_plan_changing(m) && !m->leaving && !pl_switching(m->pipe) && !m->of->stopping &&
           !(m->adapt && m->adapt->turns) && !dmn_profiling(m->planning->of);
}

bool dmn_adapt_comparable(const struct dmn_model *m, const struct tun_problem *p)
{
    return m->adapt && m->adapt->fed > 0 && p->objective == TUN_THROUGHPUT &&
           !(p->bounds.period_max_ns > 0) && !(p->bounds.latency_max_ns > 0);
}

struct dmn_costs_hold dmn_adapt_held(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    if (!a) {
        return (struct dmn_costs_hold){0};
    }
    return (struct dmn_costs_hold){
        .learning = (a->serving && (a->corrected || a->alarmed || a->verify_left > 0)) ||
                    a->carried || a->turns,
        .cold = a->cold,
        .trials = a->search && a->corrected,
        /* a plan that is not watched yet counts as good */
        .keeping = a->turns || (a->quota <= 0 && (a->carried || (a->serving && a->corrected))),
        .keeping_epoch = a->turns ? pl_epoch(m->pipe) : a->epoch};
}

void dmn_adapt_follow(struct dmn_adapt_model *a, const struct dmn_model *m, uint64_t now_ns)
{
    a->epoch = pl_epoch(m->pipe);
    a->epoch_ns = now_ns;
    a->window_ns = 0;
}

void dmn_adapt_forget(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;

    a->serving = a->corrected = a->alarmed = false;
    a->split_lost = TUN_TURNS_OPEN;
    a->verify_left = 0;
    dmn_adapt_leave_job(a);
    a->event = dmn_event_unref(a->event);
    free(base_take(a->carried));
    a->unverified = false;
    tun_problem_deinit(&a->good[0]);
    tun_problem_deinit(&a->good[1]);
}

double dmn_adapt_slow(const struct dmn_model *m, size_t ep, size_t unit, bool *ret_contended)
{
    const struct dmn_adapt_model *a = m->adapt;
    size_t units = m->planning->problem.unit_count;

    *ret_contended = false;
    if (a && !a->serving && a->carried &&
        a->carried_count == m->planning->problem.ep_count * units) {
        *ret_contended = a->carried_contended[ep];
        return a->carried[ep * units + unit];
    }
    return a && a->serving ? tun_adapt_slow(a->watch, ep, unit, ret_contended) : 1;
}

int dmn_adapt_slowed(const struct tun_problem *problem, const double *slow, struct tun_problem *ret)
{
    int error = tun_problem_copy(problem, ret);

    for (size_t k = 0; k < problem->ep_count && !error; k++) {
        for (size_t u = 0; u < problem->unit_count; u++) {
            tun_unit_scale(ret, k, u, slow[k * problem->unit_count + u]);
        }
    }
    return error;
}

/* @ret: [ep_count][unit_count], owned; NULL: no memory. @ret_contended: [ep_count]. Return: any of
 * them is not 1. */
static bool all_slow(const struct dmn_model *m, double **ret, bool *ret_contended)
{
    const struct tun_problem *p = &m->planning->problem;
    size_t cells = p->ep_count * p->unit_count;
    bool any = false;

    *ret = malloc(cells * sizeof(**ret));
    for (size_t i = 0; *ret && i < cells; i++) {
        (*ret)[i] = dmn_adapt_slow(m, i / p->unit_count, i % p->unit_count,
                                   &ret_contended[i / p->unit_count]);
        any |= (*ret)[i] != 1;
    }
    return any;
}

/* How much longer frames take than costs say, as others take their part of cores all the time. One
 * figure for the machine: with one for each EP, one that nobody uses would look better. */
static double taken_factor(const struct dmn_models *models)
{
    double held = 0, work = 0;

    for (const struct dmn_model *m = models->models; m; m = m->next) {
        held += m->adapt ? m->adapt->held_ns : 0;
        work += m->adapt ? m->adapt->work_ns : 0;
    }
    return work > 0 ? base_max(held / work, 1.0) : 1;
}

/* Its costs on the wall clock. Return: as dmn_plans.costs. */
static int with_taken(const struct dmn_model *m, struct tun_problem *ret)
{
    double by = taken_factor(m->of);

    if (by == 1 || tun_problem_copy(&m->planning->problem, ret) < 0) {
        return by == 1 ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < ret->ep_count * ret->unit_count; i++) {
        tun_unit_scale(ret, i / ret->unit_count, i % ret->unit_count, by);
    }
    return 1;
}

int dmn_adapt_costs(const struct dmn_model *m, struct tun_problem *ret)
{
    base_autofree double *slow = NULL;
    bool contended[PL_EP_MAX];
    int error = 0;

    if (m->adapt && m->adapt->serving) {
        error = tun_adapt_costs(m->adapt->watch, ret);
        return error ? error : with_taken(m, ret);
    }
    if (!all_slow(m, &slow, contended)) {
        return with_taken(m, ret);
    }
    error = dmn_adapt_slowed(&m->planning->problem, slow, ret);
    return error ? error : 1;
}

void dmn_adapt_carry_over(const struct dmn_model *from, struct dmn_model *to)
{
    const struct tun_problem *p = &from->planning->problem, *of = &to->planning->problem;
    struct dmn_adapt_model *a = to->adapt;
    double *slow = NULL;
    bool contended[PL_EP_MAX] = {false};
    bool any = all_slow(from, &slow, contended) && p->ep_count == of->ep_count &&
               p->unit_count == of->unit_count;

    dmn_adapt_forget(to);
    if (any) {
        a->carried = base_take(slow);
        a->carried_count = of->ep_count * of->unit_count;
        memcpy(a->carried_contended, contended, sizeof(contended));
    }
    free(slow);
}

const char *const dmn_adapt_phase_names[] = {
    [DMN_ADAPT_OFF] = "off",           [DMN_ADAPT_PINNED] = "pinned",
    [DMN_ADAPT_WAITING] = "waiting",   [DMN_ADAPT_WATCHING] = "watching",
    [DMN_ADAPT_DECIDING] = "deciding", [DMN_ADAPT_VERIFYING] = "verifying",
    [DMN_ADAPT_TUNING] = "tuning",
};

static enum dmn_adapt_phase phase_of(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    if (!dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_ADAPT_ENABLED)) {
        return DMN_ADAPT_OFF;
    }
    if (dmn_origin_pinned(m->origin)) {
        return DMN_ADAPT_PINNED;
    }
    if (!a) {
        return DMN_ADAPT_WAITING;
    }
    return a->job                                     ? DMN_ADAPT_DECIDING
           : a->turns                                 ? DMN_ADAPT_VERIFYING
           : a->search                                ? DMN_ADAPT_TUNING
           : !a->serving || !dmn_adapt_free_to_act(m) ? DMN_ADAPT_WAITING
           : a->verify_left > 0                       ? DMN_ADAPT_VERIFYING
                                                      : DMN_ADAPT_WATCHING;
}

void dmn_adapt_state(const struct dmn_model *m, struct dmn_adapt_state *ret)
{
    const struct dmn_adapt_model *a = m->adapt;

    *ret = a ? a->state : (struct dmn_adapt_state){0};
    ret->phase = phase_of(m);
    ret->known = a != NULL;
    if (a) {
        ret->corrected = a->corrected;
        ret->cooldown_ns = tun_adapt_cooldown_ns(a->watch);
    }
}

bool dmn_adapt_watched(const struct dmn_model *m, size_t index, struct tun_watch_view *ret)
{
    return m->adapt && m->adapt->serving && tun_adapt_watch(m->adapt->watch, index, ret);
}

/* ---- plans that were kept for states of the machine ---- */

/* Return: a plan can be known for the state in the decision, and the decision may be replaced. */
static bool may_return(const struct dmn_model *m, const struct tun_decision *d)
{
    bool clocks = d->cause == TUN_CAUSE_GOVERNOR || d->cause == TUN_CAUSE_FREQUENCY ||
                  d->cause == TUN_CAUSE_THERMAL;
    bool quota = m->adapt->quota != m->adapt->quota_decided && tun_cause_felt(d->cause);

    return (clocks || quota) && !d->must && d->after_ns > 0 && d->hold != TUN_HOLD_BUDGET &&
           d->hold != TUN_HOLD_BOUNDS;
}

bool dmn_adapt_prefer_known(struct dmn_model *m, const struct tun_record *r, struct tun_decision *d)
{
    double otherwise_ns = d->replan ? d->after_ns : d->before_ns;
    struct pl_plan known;
    struct tun_outcome o;

    if (!may_return(m, d) || !dmn_kept_plan(m, &known) || pl_plan_equal(&known, &r->plan) ||
        d->corrected.ep_count != r->problem.ep_count || !tun_fits(&d->corrected, &known) ||
        tun_eval(&d->corrected, &known, &o) != 0 || o.bottleneck_ns > (1 + NOISE) * otherwise_ns) {
        return false;
    }
    d->replan = true;
    d->hold = TUN_HOLD_NONE;
    d->plan = known;
    d->gain = d->before_ns / o.bottleneck_ns - 1;
    d->after_ns = o.bottleneck_ns;
    return true;
}

/* ---- costs that were measured since the plan was solved ---- */

/* A plan may rest on costs that were wrong: kept, predicted, or taken beside other programs. Once
 * all is calm and frames wait, it is solved again on those that were measured since. */

/* The costs of now, by which the plan is known to have been solved. */
static void note_costs(struct dmn_model *m, double period_ns)
{
    const struct tun_problem *p = &m->planning->problem;
    struct dmn_adapt_model *a = m->adapt;

    a->solved_epoch = a->epoch;
    a->solved_period_ns = period_ns;
    for (size_t k = 0; k < p->ep_count; k++) {
        a->solved_level[k] = tun_cost_level(p, k);
    }
}

/* Return: the plan, or an EP, costs clearly otherwise now. */
static bool costs_moved(const struct dmn_model *m, double period_ns)
{
    const struct tun_problem *p = &m->planning->problem;
    const struct dmn_adapt_model *a = m->adapt;
    bool moved =
        a->solved_epoch == 0 || (a->solved_epoch == a->epoch &&
                                 fabs(log(period_ns / a->solved_period_ns)) > TUN_LOST_CLEAR);

    for (size_t k = 0; k < p->ep_count; k++) {
        moved |= fabs(tun_cost_level(p, k) - a->solved_level[k]) > TUN_LOST_CLEAR;
    }
    return moved;
}

/* Return: nothing is slowed or in progress, and frames wait for every team. */
static bool is_calm(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    return !a->corrected && !a->alarmed && a->verify_left == 0 && !a->job &&
           !tun_adapt_verifying(a->watch) && dmn_adapt_pace_ns(m) > 0;
}

/* Return: a retune found the plan. It measured plans, which counts for more than the table. */
static bool is_measured(const struct dmn_model *m)
{
    const struct tun_trial *found = &m->planning->measured;

    return found->frames > 0 && pl_plan_equal(&found->plan, pl_current_plan(m->pipe));
}

bool dmn_adapt_take_learned(struct dmn_model *m)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;

    return dmn_planner_problem(m, NULL, &p) == 0 && tun_adapt_learned(m->adapt->watch, &p) == 0;
}

void dmn_adapt_solve_again(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_outcome now;

    if (now_ns - a->solved_ns < LOOK_NS || !is_calm(m) || is_measured(m) || dmn_adapt_searches(m) ||
        tun_eval(&m->planning->problem, pl_current_plan(m->pipe), &now)) {
        return;
    }
    a->solved_ns = now_ns;
    if (costs_moved(m, now.bottleneck_ns)) {
        if (!dmn_adapt_take_learned(m)) {
            return;
        }
        a->events |= TUN_EVENT_COSTS;
    } else if (a->solved_epoch == a->epoch) {
        return;
    }
    note_costs(m, now.bottleneck_ns);
}
