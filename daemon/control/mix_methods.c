/* SPDX-License-Identifier: Apache-2.0 */
/* PlanMix: one plan for all models. Solved as queued work on copies. */
#include "daemon/config/config.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/mix.h"

struct job {
    struct dmn_job work;
    struct dmn_control *control;
    struct dmn_call *call; /* held by the job until it is done */
    struct dmn_mix mix;
    json_t *result; /* owned */
    int error;
};

static json_t *models_json(const struct dmn_mix *x)
{
    const struct tun_promise *promise = &x->promise;
    json_t *models = json_array();

    for (size_t i = 0; i < x->count; i++) {
        const struct dmn_mixed *m = &x->models[i];
        char plan[PL_PLAN_TEXT_MAX];
        json_t *row = json_pack("{s:s, s:f, s:f, s:f, s:o}", "model", m->name, "wished",
                                m->wishes.rate, "rate",
                                x->wishes[i].rate * base_min(promise->mix.given[i],
                                                             m->wishes.rate > 0 ? 1.0 : INFINITY),
                                "part", promise->mix.given[i], "bound_ms",
                                dmn_json_positive(promise->answer.bound_ns[i] / 1e6));

        if (m->plan.stage_count > 0) {
            tun_plan_text(&m->p, &m->plan, plan);
        }
        json_object_set_new(row, "plan", m->plan.stage_count > 0 ? json_string(plan) : json_null());
        json_array_append_new(models, row);
    }
    return models;
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

static json_t *mix_json(const struct dmn_mix *x)
{
    const struct tun_mix *mix = &x->promise.mix;
    const struct tun_problem *p = &x->models[0].p;
    json_t *cores = json_array();
    bool due = false, rates = false;

    for (size_t i = 0; i < x->count; i++) {
        due |= x->models[i].wishes.deadline_ms > 0;
        rates |= x->models[i].wishes.rate > 0;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        json_array_append_new(cores, json_pack("{s:s, s:I, s:f, s:f}", "ep", p->eps[k].name,
                                               "cores", (json_int_t)p->eps[k].cores, "busy",
                                               mix->busy[k], "limits", mix->limits[k]));
    }
    return json_pack("{s:o, s:o, s:f, s:f, s:f, s:b, s:b, s:o}", "models", models_json(x), "cores",
                     cores, "of_wishes", mix->lambda, "bound", mix->bound, "of_bound",
                     mix->lambda / mix->bound, "rates", rates, "deadlines", due, "refused",
                     refusal_json(x));
}

static void run(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    j->error = dmn_mix_solve(&j->mix);
    j->result = j->error ? NULL : mix_json(&j->mix);
}

static void done(struct dmn_job *work)
{
    struct job *j = base_container_of(work, struct job, work);

    if (j->control->models->stopping) {
        dmn_call_error(j->call, "Busy", "the daemon is stopping");
    } else if (!j->result) {
        dmn_call_error(j->call, "Unsupported", "%s",
                       j->error == -ENOMEM ? "out of memory" : "no plan was found");
    } else {
        dmn_call_reply(j->call, json_pack("{s:O}", "mix", j->result), false);
    }
    json_decref(j->result);
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
    j->work = (struct dmn_job){.run = run, .done = done};
    dmn_work_do(c->control->machine->awaited, &j->work);
}
