/* SPDX-License-Identifier: Apache-2.0 */
/* One plan for all models: as JSON; and PlanMix, which solves one as queued work on copies. */
#include "daemon/config/config.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/mix.h"
#include "tuner/json/mix_json.h"

struct job {
    struct dmn_job work;
    struct dmn_control *control;
    struct dmn_call *call; /* held by the job until it is done */
    struct dmn_mix mix;
    bool asks;     /* for the front */
    json_t *front; /* owned; NULL: not asked for */
    int error;
};

/* Frames a second that the plan gives: of a wished rate, no more than that. */
static double given(const struct dmn_mix *x, size_t i)
{
    double part = x->promise.mix.given[i];

    return x->wishes[i].rate * (x->models[i].wishes.rate > 0 ? base_min(part, 1.0) : part);
}

/* Which part of each EP's cores the model's frames take. */
static void busy_of(const struct dmn_mix *x, size_t i, double ret[PL_EP_MAX])
{
    const struct tun_mix *mix = &x->promise.mix;
    const struct tun_problem *p = &x->models[i].p;
    double ns[PL_EP_MAX];

    memset(ret, 0, PL_EP_MAX * sizeof(*ret));
    for (size_t r = 0; r < mix->count; r++) {
        if (mix->dealt[r].model == i) {
            tun_route_load(p, &mix->dealt[r].route, ns);
            for (size_t k = 0; k < p->ep_count; k++) {
                ret[k] += given(x, i) * mix->dealt[r].share * ns[k] / 1e9 / p->eps[k].cores;
            }
        }
    }
}

static bool serves(const struct dmn_mixed *m, const struct dmn_models *models)
{
    const struct dmn_model *now = dmn_model_loaded(models, m->name, m->loaded_ns);

    return now && pl_plan_equal(pl_current_plan(now->pipe), &m->plan);
}

static json_t *model_json(const struct dmn_mix *x, size_t i, const double *busy, bool all_serve)
{
    const struct dmn_mixed *m = &x->models[i];
    const struct tun_promise *promise = &x->promise;
    double cores = 0, all = 0, costs = 0, bound_ns = promise->answer.bound_ns[i];
    char plan[PL_PLAN_TEXT_MAX];
    json_t *takes = json_object();

    for (size_t k = 0; k < m->p.ep_count; k++) {
        json_object_set_new(takes, m->p.eps[k].name, json_real(busy[k]));
        cores += busy[k] * m->p.eps[k].cores;
        all += m->p.eps[k].cores;
        costs += promise->mix.limits[k] * busy[k];
    }
    if (m->plan.stage_count > 0) {
        tun_plan_text(&m->p, &m->plan, plan);
    }
    return json_pack("{s:s, s:f, s:f, s:f, s:o, s:o, s:o, s:f, s:f, s:o}", "model", m->name,
                     "wished", m->wishes.rate, "rate", given(x, i), "part", promise->mix.given[i],
                     "bound_ms", dmn_json_positive(bound_ns / 1e6), "served_bound_ms",
                     dmn_json_positive((all_serve ? bound_ns : x->served_bound_ns[i]) / 1e6),
                     "busy", takes, "share", cores / all, "costs", costs, "plan",
                     m->plan.stage_count > 0 ? json_string(plan) : json_null());
}

/* Which deadline may be missed, where, and who breaks it; null: all hold, or there is none. */
static json_t *refusal_json(const struct dmn_mix *x)
{
    const struct tun_answer *a = &x->promise.answer;
    const struct tun_problem *p = &x->models[0].p;
    const char *late = x->models[a->late].name, *model = x->models[a->model].name;
    char core[PL_EP_NAME_MAX + 48], text[TUN_REFUSAL_TEXT_MAX];
    size_t ep, seat = a->seat;

    if (a->refusal == TUN_ADMITTED) {
        return json_null();
    }
    ep = tun_seat_ep(p, &seat);
    snprintf(core, sizeof(core), "%s, core %zu of %u", p->eps[ep].name, seat + 1, p->eps[ep].cores);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:s}", "late", late, "core", core, "why",
                     tun_refusal_name(a->refusal), "model", model, "unit", (json_int_t)a->unit,
                     "text", tun_refusal_text(a, core, late, model, text));
}

/* How near the plans come to the bound that served when the mix was made; 0: unknown. */
static double served_reached(const struct dmn_mix *x)
{
    const struct tun_mix *mix = &x->promise.mix;

    return !tun_least_cost(mix->objective) ? x->served_lambda / mix->bound
           : x->served_value > 0           ? mix->bound / x->served_value
                                           : 0;
}

json_t *dmn_mix_json(const struct dmn_mix *x, const struct dmn_models *models)
{
    static const char *const objectives[] = {
        [TUN_FAIR] = "fair", [TUN_ENERGY] = "energy", [TUN_SOONEST] = "soonest"};
    const struct tun_mix *mix = &x->promise.mix;
    const struct tun_problem *p = &x->models[0].p;
    json_t *rows = json_array(), *cores = json_array();
    double parts[TUN_MIX_MAX], busy[PL_EP_MAX], sum[PL_EP_MAX] = {0};
    const char *names[TUN_MIX_MAX];
    bool due = false, rates = false, all_serve = true;

    for (size_t i = 0; i < x->count; i++) {
        due |= x->models[i].wishes.deadline_ms > 0;
        rates |= x->models[i].wishes.rate > 0;
        all_serve &= x->models[i].pinned || serves(&x->models[i], models);
        parts[i] = given(x, i) / x->wishes[i].rate;
        names[i] = x->models[i].name;
    }
    for (size_t i = 0; i < x->count; i++) {
        busy_of(x, i, busy);
        json_array_append_new(rows, model_json(x, i, busy, all_serve));
        for (size_t k = 0; k < p->ep_count; k++) {
            sum[k] += busy[k];
        }
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        json_array_append_new(cores, json_pack("{s:s, s:I, s:f, s:f}", "ep", p->eps[k].name,
                                               "cores", (json_int_t)p->eps[k].cores, "busy", sum[k],
                                               "limits", mix->limits[k]));
    }
    return json_pack("{s:o, s:o, s:s, s:f, s:f, s:f, s:b, s:o, s:f, s:b, s:b, s:o, s:o, s:o}",
                     "models", rows, "cores", cores, "objective", objectives[mix->objective],
                     "of_wishes", mix->lambda, "bound", mix->bound, "of_bound",
                     tun_mix_of_bound(mix), "serves", all_serve, "served_of_bound",
                     dmn_json_positive(all_serve ? tun_mix_of_bound(mix) : served_reached(x)),
                     "fairness", tun_fairness(parts, x->count), "rates", rates, "deadlines", due,
                     "refused", refusal_json(x), "cut", tun_cuts_json(&x->promise, names, x->count),
                     "wide", tun_wide_json(&x->promise, x->wishes, names, x->count));
}

static void run(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    j->error = dmn_mix_solve(&j->mix);
    if (!j->error && j->asks) {
        j->error = tun_mix_front_json(j->mix.wishes, j->mix.count, 0, &j->front);
    }
}

static void done(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    if (j->control->models->stopping) {
        dmn_call_error(j->call, "Busy", "the daemon is stopping");
    } else if (j->error) {
        dmn_call_error(j->call, "Unsupported", "%s",
                       j->error == -ENOMEM ? "out of memory" : "no plan was found");
    } else {
        dmn_call_reply(j->call,
                       json_pack("{s:o, s:O*}", "mix", dmn_mix_json(&j->mix, j->control->models),
                                 "front", j->front),
                       false);
    }
    json_decref(j->front);
    dmn_mix_deinit(&j->mix);
    free(j);
}

void dmn_method_plan_mix(struct dmn_call *c)
{
    struct job *j = calloc(1, sizeof(*j));
    int error = j ? dmn_mix_take(c->control->models, false, &j->mix) : -ENOMEM;

    if (error) {
        if (j) {
            dmn_mix_deinit(&j->mix);
        }
        free(j);
        dmn_call_error(c, error == -ENODATA ? "NotFound" : "Unsupported", "%s",
                       error == -ENODATA ? "no model serves here"
                       : error == -E2BIG ? "more models than can be planned together"
                                         : "out of memory");
        return;
    }
    j->control = c->control;
    j->call = c;
    j->asks = dmn_call_asks(c, "front");
    j->work = (struct dmn_job){.run = run, .done = done};
    dmn_work_do(c->control->machine->awaited, &j->work);
}
