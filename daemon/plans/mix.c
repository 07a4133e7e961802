/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/mix.h"

#include "daemon/plans/planner.h"
#include "tuner/solve/solve.h"

#define CHANGES 1u /* of the EP in a route */
#define SIGMAS 3.1 /* of the p99.9 of a normal distribution */
#define STEPS 16u  /* that find mu */
#define ROUNDING 1e-9
#define LEAST_PART 1e-3 /* of what its weight is worth, for a model without a rate */

/* ---- what is known ---- */

/* Makes the units of @p as long as the clocks of @m say for their p99.9. */
static void slow_down(const struct dmn_model *m, struct tun_problem *p)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        struct pl_series s;
        double sigma;

        pl_unit_stats(m->pipe, u, &s);
        sigma = s.count > 1 && s.mean_ns > 0 ? sqrt(s.m2 / (double)(s.count - 1)) / s.mean_ns : 0;
        for (size_t k = 0; k < p->ep_count; k++) {
            tun_cell_at(&p->costs, k, 1, u)->ns *= 1 + SIGMAS * sigma;
        }
    }
}

static int take(struct dmn_model *m, struct dmn_mixed *ret)
{
    int error;

    dmn_planner_learn(m);
    snprintf(ret->name, sizeof(ret->name), "%s", m->name);
    ret->wishes = m->wishes;
    error = dmn_planner_problem(m, &(struct dmn_goal){.objective = TUN_THROUGHPUT}, &ret->p);
    error = error ? error : tun_problem_copy(&ret->p, &ret->slow);
    if (!error) {
        slow_down(m, &ret->slow);
    }
    return error;
}

int dmn_mix_take(const struct dmn_models *models, double floor, struct dmn_mix *ret)
{
    size_t count = dmn_model_count(models);
    int error = 0;

    *ret = DMN_MIX_NULL;
    ret->floor = floor;
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
            error = take(m, &ret->models[ret->count++]);
        }
    }
    return error ? error : ret->count ? 0 : -ENODATA;
}

void dmn_mix_deinit(struct dmn_mix *x)
{
    for (size_t i = 0; i < x->count; i++) {
        tun_problem_deinit(&x->models[i].p);
        tun_problem_deinit(&x->models[i].slow);
    }
    free(x->models);
    tun_promise_deinit(&x->promise);
    *x = DMN_MIX_NULL;
}

/* ---- rates ---- */

/* Sets the rates of models that wish none, for @mu, which is theirs alone at 1. */
static void set_rates(struct dmn_mix *x, const double *alone, double mu)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct dmn_wishes *w = &x->models[i].wishes;

        x->wishes[i].rate = w->rate > 0 ? w->rate : mu * w->weight * alone[i];
    }
}

/* Return: routes keep all rates. */
static bool keeps(const struct dmn_mix *x)
{
    struct tun_mix mix = TUN_MIX_NULL;
    bool all = tun_mix_solve(x->wishes, x->count, TUN_FAIR, CHANGES, 1, &mix) == 0 &&
               mix.lambda >= 1 - ROUNDING;

    tun_mix_deinit(&mix);
    return all;
}

static int find_rates(struct dmn_mix *x)
{
    double alone[TUN_MIX_MAX], least = LEAST_PART, most = 0;
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
    uint16_t first = 0;

    for (size_t s = 0; s < of->route.stages; s++) {
        uint16_t ep = of->route.ep[s], last = of->route.last[s];

        to->stages[to->stage_count++] = (struct pl_stage_plan){
            .first_unit = first,
            .last_unit = last,
            .group_count = 1,
            .groups = {{.ep = ep,
                        .width = 1,
                        .count = (uint16_t)base_min(p->eps[ep].cores, teams_most)}},
        };
        first = (uint16_t)(last + 1);
    }
}

/* The routes of model @i as a plan whose teams may run on any core of their EP. */
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
    tun_eps(p, &eps);
    if (pl_plan_check(ret, &eps, p->unit_count, NULL, 0) < 0) {
        ret->stage_count = 0;
    }
}

int dmn_mix_solve(struct dmn_mix *x)
{
    int error;

    for (size_t i = 0; i < x->count; i++) {
        const struct dmn_wishes *w = &x->models[i].wishes;

        x->wishes[i] = (struct tun_wish){.p = &x->models[i].p,
                                         .slow = &x->models[i].slow,
                                         .weight = w->weight,
                                         .class = w->class,
                                         .deadline_ns = w->deadline_ms * 1e6};
    }
    error = find_rates(x);
    error = error ? error
                  : tun_promise_make(x->wishes, x->count, TUN_FAIR, CHANGES, x->floor, &x->promise);
    for (size_t i = 0; i < x->count && !error; i++) {
        make_plan(x, i, &x->models[i].plan);
    }
    return error;
}
