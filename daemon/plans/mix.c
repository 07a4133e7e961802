/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/mix.h"

#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "tuner/solve/solve.h"

#define CHANGES 1u      /* of the EP in a route */
#define CLEAR 0.01      /* log: of a better mix */
#define SIGMAS 3.1      /* of the p99.9 of a normal distribution */
#define STEPS 16u       /* that find mu */
#define LEAST_PART 1e-3 /* of what its weight is worth, for a model without a rate */
#define AWAY 1e6        /* times: what a unit costs where a user's plan does not run it */

/* What is optimised for several models, by planner.objective. */
static const enum tun_share SHARES[] = {
    [TUN_THROUGHPUT] = TUN_FAIR, [TUN_LATENCY] = TUN_SOONEST, [TUN_POWER] = TUN_ENERGY};

/* ---- what is known ---- */

/* How far times of a unit spread, in parts of their mean. @ep: of each team. @ret: of each EP's
 * teams; 0 where none ran it. Return: of all, each in parts of its EP's mean. */
static double spread(const struct dmn_model *m, size_t unit, const uint16_t *ep, double *ret)
{
    struct pl_series of[PL_EP_MAX] = {0};
    double squares = 0, count = 0;

    for (size_t t = 0; t < pl_team_count(m->pipe); t++) {
        struct pl_series s;

        if (pl_team_unit_stats(m->pipe, t, unit, &s) && s.count > 0) {
            pl_series_merge(&of[ep[t]], &s);
        }
    }
    for (size_t k = 0; k < PL_EP_MAX; k++) {
        double n = (double)of[k].count, mean = of[k].mean_ns;

        ret[k] = n > 1 && mean > 0 ? sqrt(of[k].m2 / (n - 1)) / mean : 0;
        squares += ret[k] > 0 ? (n - 1) * ret[k] * ret[k] : 0;
        count += ret[k] > 0 ? n - 1 : 0;
    }
    return count > 0 ? sqrt(squares / count) : 0;
}

/* Makes the units of @p as long as the clocks of @m say for their p99.9: on an EP that did not run
 * them, as far as on others. */
static void slow_down(const struct dmn_model *m, struct tun_problem *p)
{
    uint16_t ep[PL_TEAM_MAX];
    struct pl_team_stats team;

    for (size_t t = 0; t < pl_team_count(m->pipe); t++) {
        pl_team_stats(m->pipe, t, &team);
        ep[t] = team.ep;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        double of[PL_EP_MAX], all = spread(m, u, ep, of);

        for (size_t k = 0; k < p->ep_count; k++) {
            tun_unit_scale(p, k, u, 1 + SIGMAS * (of[k] > 0 ? of[k] : all));
        }
    }
}

/* Return: a route of the plan runs the unit on a core of the EP. */
static bool runs_on(const struct pl_plan *plan, size_t unit, size_t ep)
{
    bool runs = false;

    for (size_t s = 0; s < plan->stage_count && !runs; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];

        for (size_t g = 0; g < stage->group_count && !runs; g++) {
            runs = stage->first_unit <= unit && unit <= stage->last_unit &&
                   pl_group_on(&stage->groups[g], ep) > 0;
        }
    }
    return runs;
}

/* A user's plan stays: no other EP is worth it. */
static void keep_to(const struct pl_plan *plan, struct tun_problem *p)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        for (size_t k = 0; k < p->ep_count; k++) {
            tun_unit_scale(p, k, u, runs_on(plan, u, k) ? 1 : AWAY);
        }
    }
}

static int costs(const struct dmn_model *m, bool apart, struct tun_problem *ret)
{
    static const struct dmn_goal all = {.objective = TUN_THROUGHPUT};
    const struct dmn_plans *plans = m->planning->of;
    int r = plans->costs ? plans->costs(m, ret) : 0;

    return r == 0 ? dmn_planner_problem(m, apart ? NULL : &all, ret) : base_min(r, 0);
}

/* In how many pieces a unit can be run on every kind of core that there is. */
static size_t pieces_most(const struct dmn_model *m, size_t unit)
{
    struct krn_range ops = {m->model->units[unit].first_op, m->model->units[unit].last_op + 1};
    size_t most = PL_PIECES_MAX;

    for (size_t kind = 0; kind < krn_net_kinds(m->net); kind++) {
        most = krn_net_pieces(m->net, kind, ops, most);
    }
    return most;
}

static int take_pieces(const struct dmn_model *m, struct dmn_mixed *ret)
{
    size_t units = base_max(m->model->unit_count, (size_t)1);

    ret->cut_most = malloc(units);
    ret->pieces = malloc(units);
    ret->served_pieces = malloc(units);
    ret->uncut = malloc(units * sizeof(*ret->uncut));
    if (!ret->cut_most || !ret->pieces || !ret->served_pieces || !ret->uncut) {
        return -ENOMEM;
    }
    for (size_t u = 0; u < m->model->unit_count; u++) {
        double n = pl_pieces(m->pipe, u), longest = pl_longest_piece(m->pipe, u);

        ret->cut_most[u] = (uint8_t)pieces_most(m, u);
        ret->served_pieces[u] = (uint8_t)n;
        ret->pieces[u] = 1;
        /* longest = u + (1 - u) / n */
        ret->uncut[u] = n > 1 && longest > 0
                            ? base_max(0.0, base_min((longest - 1 / n) / (1 - 1 / n), 1.0))
                            : TUN_UNCUT;
    }
    return 0;
}

static int take(struct dmn_model *m, bool apart, struct dmn_mixed *ret)
{
    int error;

    dmn_planner_learn(m);
    snprintf(ret->name, sizeof(ret->name), "%s", m->name);
    ret->loaded_ns = m->loaded_ns;
    ret->wishes = m->wishes;
    ret->serving = *pl_current_plan(m->pipe);
    ret->pinned = dmn_origin_pinned(m->origin);
    error = take_pieces(m, ret);
    error = error ? error : costs(m, apart, &ret->p);
    for (size_t k = 0; !error && k < ret->p.ep_count; k++) {
        ret->level[k] = tun_cost_level(&ret->p, k);
    }
    if (!error && ret->pinned) {
        keep_to(&ret->serving, &ret->p);
    }
    error = error ? error : tun_problem_copy(&ret->p, &ret->slow);
    if (!error) {
        slow_down(m, &ret->slow);
    }
    return error;
}

int dmn_mix_take(const struct dmn_models *models, bool apart, struct dmn_mix *ret)
{
    const struct dmn_config *config = dmn_machine_config(models->machine);
    size_t count = dmn_model_count(models);
    int error = 0;

    *ret = DMN_MIX_NULL;
    ret->apart = apart;
    ret->floor = (double)dmn_config_int(config, DMN_KEY_PLANNER_FLOOR) / 100;
    ret->objective = SHARES[dmn_goal_config(config).objective];
    if (count == 0 || count > TUN_MIX_MAX) {
        return count ? -E2BIG : -ENODATA;
    }
    ret->models = calloc(count, sizeof(*ret->models));
    if (!ret->models) {
        return -ENOMEM;
    }
    for (struct dmn_model *m = models->models; m && !error; m = m->next) {
        if (!pl_asleep(m->pipe)) {
            ret->models[ret->count].p = ret->models[ret->count].slow = TUN_PROBLEM_NULL;
            error = take(m, apart, &ret->models[ret->count++]);
        }
    }
    return error ? error : ret->count ? 0 : -ENODATA;
}

void dmn_mix_deinit(struct dmn_mix *x)
{
    for (size_t i = 0; i < x->count; i++) {
        tun_problem_deinit(&x->models[i].p);
        tun_problem_deinit(&x->models[i].slow);
        free(x->models[i].cut_most);
        free(x->models[i].pieces);
        free(x->models[i].served_pieces);
        free(x->models[i].uncut);
    }
    free(x->models);
    tun_promise_deinit(&x->promise);
    *x = DMN_MIX_NULL;
}

/* ---- rates ---- */

/* Sets the rates: of models that wish none, for @mu; of none more than its max_share is good for,
 * if it has one: a rate that all cores together do not reach is wished nevertheless, and not kept.
 * @alone: of each if it had all cores. */
static void set_rates(struct dmn_mix *x, const double *alone, double mu)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct dmn_wishes *w = &x->models[i].wishes;

        x->wishes[i].rate = base_min(w->rate > 0 ? w->rate : mu * w->weight * alone[i],
                                     w->max_share < 1 ? w->max_share * alone[i] : INFINITY);
    }
}

/* Return: routes keep all rates. */
static bool keeps(const struct dmn_mix *x)
{
    struct tun_mix mix = TUN_MIX_NULL;
    bool all = tun_mix_solve(x->wishes, x->count, TUN_FAIR, CHANGES, 1, &mix) == 0 &&
               mix.lambda >= 1 - DMN_MIX_ROUNDING;

    tun_mix_deinit(&mix);
    return all;
}

static int find_rates(struct dmn_mix *x)
{
    double alone[TUN_MIX_MAX] = {0}, least = LEAST_PART, most = 0;
    size_t wished = 0;

    for (size_t i = 0; i < x->count; i++) {
        double ns = tun_bound_ns(&x->models[i].p);

        if (!(ns > 0)) {
            return -ENOMEM;
        }
        alone[i] = (double)BASE_NS_PER_S / ns;
        wished += x->models[i].wishes.rate > 0;
        most = base_max(most, 1 / x->models[i].wishes.weight);
    }
    set_rates(x, alone, 1);
    if (wished == 0 || wished == x->count) {
        return 0;
    }
    /* the last one of a row of ever smaller intervals, in proportion */
    for (unsigned i = 0; i < STEPS; i++) {
        double mu = sqrt(least * most);

        set_rates(x, alone, mu);
        least = keeps(x) ? mu : least;
        most = least == mu ? most : mu;
    }
    set_rates(x, alone, least);
    return 0;
}

/* ---- plans ---- */

static void add_route(const struct tun_problem *p, const struct tun_dealt *of, size_t teams_most,
                      struct pl_plan *to)
{
    uint16_t first = 0, width = base_max(of->route.width, (uint16_t)1);

    for (size_t s = 0; s < of->route.stages; s++) {
        uint16_t ep = of->route.ep[s], last = of->route.last[s];
        size_t teams = base_max(p->eps[ep].cores / width, 1);

        to->stages[to->stage_count++] = (struct pl_stage_plan){
            .first_unit = first,
            .last_unit = last,
            .group_count = 1,
            .groups = {{.ep = ep, .width = width, .count = (uint16_t)base_min(teams, teams_most)}},
        };
        first = (uint16_t)(last + 1);
    }
}

static int by_ep(const void *a, const void *b)
{
    const struct pl_group *x = a, *y = b;

    return (x->ep > y->ep) - (x->ep < y->ep);
}

/* Where all routes run whole frames, has each frame go to whichever team is done first with it. */
static void share_frames(struct pl_plan *io)
{
    struct pl_stage_plan all = io->stages[0];

    for (size_t s = 1; s < io->stage_count; s++) {
        if (io->stages[s].first_unit > 0) {
            return;
        }
        all.groups[all.group_count++] = io->stages[s].groups[0];
    }
    all.share = 0;
    qsort(all.groups, all.group_count, sizeof(all.groups[0]), by_ep);
    *io = (struct pl_plan){.stage_count = 1, .stages = {all}};
}

/* The routes of model @i as a plan whose teams may run on any core of their EP. Parts of routes
 * keep models from each other's cores; one alone needs none. */
static void make_plan(const struct dmn_mix *x, size_t i, struct pl_plan *ret)
{
    const struct tun_mix *mix = &x->promise.mix;
    const struct tun_problem *p = &x->models[i].p;
    size_t routes = 0, stages = 0;
    unsigned shares = 0;
    struct pl_ep_set eps;

    *ret = (struct pl_plan){0};
    for (size_t k = 0; k < mix->count; k++) {
        stages += mix->dealt[k].model == i ? mix->dealt[k].route.stages : 0;
    }
    for (size_t k = 0; k < mix->count && stages > 0 && routes < PL_ROUTE_MAX; k++) {
        const struct tun_dealt *of = &mix->dealt[k];
        unsigned share = (unsigned)(of->share * PL_SHARE_ALL + 0.5);

        if (of->model == i && share > 0 && ret->stage_count + of->route.stages <= PL_STAGE_MAX) {
            size_t first = ret->stage_count;

            add_route(p, of, base_max(PL_TEAM_MAX / stages, (size_t)1), ret);
            ret->stages[first].share = (uint16_t)share;
            shares += share;
            routes++;
        }
    }
    /* what rounding left is the largest's, which comes first; the only one has no part */
    ret->stages[0].share =
        (uint16_t)(routes > 1 ? ret->stages[0].share + PL_SHARE_ALL - shares : 0);
    if (x->count == 1 && routes > 1) {
        share_frames(ret);
    }
    tun_eps(p, &eps);
    if (pl_plan_check(ret, &eps, p->unit_count, NULL, 0) < 0) {
        ret->stage_count = 0;
    }
}

/* The best plan of each model alone. */
static int solve_apart(struct dmn_mix *x)
{
    base_autofree struct tun_solution *s = calloc(1, sizeof(*s));
    int error = s ? 0 : -ENOMEM;

    for (size_t i = 0; i < x->count && !error; i++) {
        error = base_min(tun_solve(&x->models[i].p, s), 0);
        x->models[i].plan = s->plan;
    }
    return error;
}

/* The best mix of routes that do not change the EP, unless others are clearly better: each change
 * costs a frame time, and leaves it waiting once more. */
static int make_promise(struct dmn_mix *x)
{
    struct tun_promise plain;
    int error = tun_promise_make(x->wishes, x->count, x->objective, 0, x->floor, &plain);

    error =
        error ? error
              : tun_promise_make(x->wishes, x->count, x->objective, CHANGES, x->floor, &x->promise);
    if (!error && plain.mix.objective == x->promise.mix.objective &&
        (plain.answer.refusal == TUN_ADMITTED || x->promise.answer.refusal != TUN_ADMITTED) &&
        fabs(log(plain.mix.value / x->promise.mix.value)) < CLEAR) {
        tun_promise_deinit(&x->promise);
        x->promise = plain;
        plain = TUN_PROMISE_NULL;
    }
    tun_promise_deinit(&plain);
    return error;
}

static int solve_together(struct dmn_mix *x)
{
    int error;

    for (size_t i = 0; i < x->count; i++) {
        const struct dmn_wishes *w = &x->models[i].wishes;

        x->wishes[i] =
            (struct tun_wish){.p = &x->models[i].p,
                              .slow = &x->models[i].slow,
                              .weight = w->weight,
                              .class = w->class,
                              .deadline_ns = w->deadline_ms * 1e6,
                              .cut_most = x->models[i].pinned ? NULL : x->models[i].cut_most,
                              .uncut = x->models[i].uncut};
    }
    error = find_rates(x);
    error = error ? error : make_promise(x);
    for (size_t i = 0; i < x->count && !error; i++) {
        make_plan(x, i, &x->models[i].plan);
    }
    for (size_t i = 0; i < x->promise.cut_count && !error; i++) {
        const struct tun_cut *c = &x->promise.cuts[i];

        x->models[c->model].pieces[c->unit] = (uint8_t)c->pieces;
    }
    return error ? error : dmn_mix_see_served(x);
}

int dmn_mix_solve(struct dmn_mix *x)
{
    return x->apart ? solve_apart(x) : solve_together(x);
}
