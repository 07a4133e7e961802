/* SPDX-License-Identifier: Apache-2.0 */
/* What the plans that served when a mix was taken can give, and which plans have routes that are
 * too slow. */
#include "daemon/plans/mix.h"

/* What the plans that serve can give. */
static void see_rates(struct dmn_mix *x)
{
    double busy[PL_EP_MAX] = {0}, most = 0;
    const struct tun_problem *p = &x->models[0].p;

    for (size_t i = 0; i < x->count; i++) {
        double ns[PL_EP_MAX];

        if (tun_plan_busy(&x->models[i].p, &x->models[i].serving, ns) != 0) {
            return; /* a cost is unknown: 0 */
        }
        for (size_t k = 0; k < p->ep_count; k++) {
            busy[k] += x->wishes[i].rate * ns[k] / (double)BASE_NS_PER_S;
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        most = base_max(most, busy[k]);
        x->served_value += busy[k] * p->eps[k].cores * tun_time_price(x->objective, p, k);
    }
    x->served_lambda = 1 / most;
}

/* Adds the routes of a plan whose stages have teams of one EP: of one core, or wider ones where a
 * route has one stage. Return: it is such a plan. */
static bool add_dealt(const struct dmn_mixed *m, size_t model, struct tun_mix *to)
{
    for (size_t s = 0; s < m->serving.stage_count; s++) {
        const struct pl_stage_plan *stage = &m->serving.stages[s];
        struct tun_dealt *of = &to->dealt[to->count - (stage->first_unit > 0)];
        uint16_t at = stage->first_unit > 0 ? of->route.stages : 0;
        size_t width = pl_group_width(&stage->groups[0]);

        if (stage->group_count > 1 || pl_group_spans(&stage->groups[0]) || at > TUN_CHANGES_MAX ||
            (width > 1 && (at > 0 || stage->last_unit + 1u < m->p.unit_count))) {
            return false;
        }
        if (at == 0) {
            *of = (struct tun_dealt){.model = model,
                                     .share = pl_route_part(&m->serving, s),
                                     .route.width = (uint16_t)width};
            to->count++;
        }
        of->route.ep[at] = stage->groups[0].ep;
        of->route.last[at] = stage->last_unit;
        of->route.stages = at + 1;
    }
    return true;
}

/* Whether deadlines hold by the plans that serve. */
static int see_promised(struct dmn_mix *x)
{
    base_autofree struct tun_dealt *dealt = calloc(x->count * PL_STAGE_MAX, sizeof(*dealt));
    struct tun_mix served = {.dealt = dealt};
    struct tun_lanes lanes = TUN_LANES_NULL;
    struct tun_answer answer;
    int error = dealt ? 0 : -ENOMEM;

    if (x->served_lambda < 1 - DMN_MIX_ROUNDING) {
        return error;
    }
    for (size_t i = 0; i < x->count && !error; i++) {
        if (!add_dealt(&x->models[i], i, &served)) {
            return 0;
        }
        served.given[i] = 1;
    }
    error = error ? error : tun_lanes_init(x->wishes, &served, false, &lanes);
    for (size_t i = 0; i < x->count && !error; i++) {
        for (size_t u = 0; u < x->models[i].p.unit_count; u++) {
            tun_lanes_cut(x->wishes, &lanes, i, u, x->models[i].served_pieces[u]);
        }
    }
    error = error ? error : tun_promise_admit(x->wishes, x->count, x->floor, &lanes, &answer);
    x->served_holds = !error && answer.refusal == TUN_ADMITTED;
    if (x->served_holds) {
        memcpy(x->served_bound_ns, answer.bound_ns, sizeof(answer.bound_ns));
    }
    tun_lanes_deinit(&lanes);
    return error;
}

/* Return: the plan's slowest route takes longer than the deadline. */
static bool lags(const struct dmn_mixed *m, const struct pl_plan *plan)
{
    struct tun_outcome o;

    return m->wishes.deadline_ms > 0 && plan->stage_count > 0 &&
           tun_eval(&m->slow, plan, &o) == 0 && o.latency_ns > m->wishes.deadline_ms * 1e6;
}

int dmn_mix_see_served(struct dmn_mix *x)
{
    for (size_t i = 0; i < x->count; i++) {
        struct dmn_mixed *m = &x->models[i];

        m->lags = lags(m, &m->plan);
        m->served_lags = lags(m, &m->serving);
    }
    see_rates(x);
    return see_promised(x);
}
