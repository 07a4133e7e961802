/* SPDX-License-Identifier: Apache-2.0 */
/* GetPlan and SetPlan: which plan, or which route over boards, serves a model. */

#include "base/base.h"
#include "daemon/boards/board_model.h"
#include "daemon/config/route_text.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/machine/eps.h"
#include "daemon/plans/planning.h"
#include "daemon/plans/switch.h"

void dmn_method_get_plan(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");
    const struct dmn_board_model *bm = m ? dmn_boards_of(c->control->boards, m) : NULL;
    char plan[PL_PLAN_TEXT_MAX];

    if (!m) {
        return;
    }
    dmn_model_plan_text(m, plan);
    dmn_call_reply(c,
                   json_pack("{s:s, s:s, s:I, s:o, s:o}", "plan", plan, "algorithm",
                             dmn_origin_name(m->origin), "epoch", (json_int_t)pl_epoch(m->pipe),
                             "warnings", dmn_model_warnings_json(m, NULL), "route",
                             bm && bm->serving ? json_string(bm->text) : json_null()),
                   false);
}

bool dmn_method_may_switch(const struct dmn_model *m, struct dmn_call *c)
{
    if (m->planning->retune || m->planning->switched.fn) {
        dmn_call_error(c, "Busy", "why",
                       m->planning->retune ? "a retune is in progress"
                                           : "another plan is being set");
        return false;
    }
    return true;
}

void dmn_method_refuse_plan(const struct dmn_model *m, struct dmn_call *c, const char *why)
{
    char text[768];

    snprintf(text, sizeof(text), "model %s: %s", m->name, why);
    dmn_call_error(c, "InvalidPlan", "why", text);
}

void dmn_method_cannot_plan(struct dmn_call *c, int error)
{
    dmn_call_error(c, error == -ENOMEM ? "Unsupported" : "InvalidPlan", "why", strerror(-error));
}

/* A call that waits for a switch. The model exists as long as the call waits: an unload ends the
 * wait first. */
struct switch_call {
    struct dmn_call *call;
    struct dmn_model *model;
    struct pl_plan plan;
    struct dmn_origin origin; /* of a user: no route serves; its reply has warnings */
};

static void switched(void *ctx, const struct dmn_outcome *o)
{
    struct switch_call *s = ctx;
    bool user = s->origin.from == DMN_FROM_USER;
    char plan[PL_PLAN_TEXT_MAX];
    json_t *reply;

    if (o) {
        dmn_call_refuse(s->call, o);
    } else {
        if (user) {
            dmn_boards_set_alone(s->call->control->boards, s->model);
        } else {
            dmn_boards_unset(s->call->control->boards, s->model);
        }
        dmn_model_plan_text(s->model, plan);
        reply =
            json_pack("{s:s, s:I}", "plan", plan, "epoch", (json_int_t)pl_epoch(s->model->pipe));
        if (user) {
            json_object_set_new(reply, "warnings", dmn_model_warnings_json(s->model, NULL));
        }
        dmn_call_reply(s->call, reply, false);
    }
    free(s);
}

/* Called again when an earlier plan has drained: plans on trial drain all the while. */
static void switch_now(void *ctx, const struct dmn_outcome *o)
{
    struct switch_call *s = ctx;
    int error;

    if (o) {
        switched(s, o);
        return;
    }
    if (pl_switching(s->model->pipe)) {
        dmn_plan_wait(s->model, (struct dmn_done){switch_now, s});
        return;
    }
    error = dmn_plan_switch(s->model, &(struct dmn_switch){.plan = &s->plan,
                                                           .origin = s->origin,
                                                           .cause = DMN_CAUSE_REQUEST,
                                                           .detail = s->call->method,
                                                           .keep = true,
                                                           .learn = true});
    if (error == 0) {
        dmn_plan_wait(s->model, (struct dmn_done){switched, s});
        return;
    }
    dmn_method_cannot_plan(s->call, error);
    free(s);
}

void dmn_method_switch(struct dmn_model *m, struct dmn_call *c, const struct pl_plan *plan,
                       struct dmn_origin origin)
{
    struct switch_call *s;

    if (!dmn_method_may_switch(m, c)) {
        return;
    }
    if (origin.from == DMN_FROM_USER && pl_asleep(m->pipe)) {
        dmn_method_refuse_plan(m, c,
                               "it is too large for this board alone; set a route over boards");
        return;
    }
    s = malloc(sizeof(*s));
    if (!s) {
        dmn_call_error(c, "Unsupported", "why", "out of memory");
        return;
    }
    *s = (struct switch_call){c, m, *plan, origin};
    switch_now(s, NULL);
}

/* @why: DMN_ROUTE_ERROR_MAX bytes. Return: 0, and the call was answered; -EINVAL with @why. */
static int set_route(struct dmn_model *m, struct dmn_call *c, const char *text, char *why)
{
    const struct dmn_board_model *bm = dmn_boards_of(c->control->boards, m);
    int r = dmn_boards_set(c->control->boards, m, text, why);

    if (r == 0) {
        dmn_call_reply(c,
                       json_pack("{s:s, s:I, s:[s]}", "plan", text, "epoch",
                                 (json_int_t)bm->route->number, "warnings",
                                 pl_asleep(m->pipe)
                                     ? "frames are refused until the boards have loaded their "
                                       "segments"
                                     : "this board computes the frames until the boards have "
                                       "loaded their segments"),
                       false);
    }
    return r;
}

void dmn_method_set_route(struct dmn_model *m, struct dmn_call *c, const char *text)
{
    char why[DMN_ROUTE_ERROR_MAX];

    if (set_route(m, c, text, why) < 0) {
        dmn_method_refuse_plan(m, c, why);
    }
}

void dmn_method_set_plan(struct dmn_call *c)
{
    const char *text = json_string_value(json_object_get(c->parameters, "plan"));
    struct dmn_model *m = dmn_call_model(c, "model");
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    char error[256], why[DMN_ROUTE_ERROR_MAX], both[512];
    struct dmn_route_text route;
    int fits;

    if (!m) {
        return;
    }
    if (!plan) {
        dmn_call_error(c, "Unsupported", "why", "out of memory");
        return;
    }
    fits =
        dmn_eps_plan(c->control->machine, text, m->model->unit_count, error, sizeof(error), plan);
    if (fits == 0) {
        dmn_method_switch(m, c, plan, (struct dmn_origin){.from = DMN_FROM_USER});
    } else if (fits == -EAGAIN) {
        c->control->machine->whole_wanted_ns = base_now_ns();
        snprintf(both, sizeof(both), "%s; it is joined now: set the plan again in a second", error);
        dmn_call_error(c, "Busy", "why", both);
    } else if (!dmn_boards_of(c->control->boards, m) ||
               dmn_route_text_parse(text, why, &route) < 0) {
        dmn_method_refuse_plan(m, c, error);
    } else if (set_route(m, c, text, why) < 0) {
        snprintf(both, sizeof(both), "%s; as a route over boards: %s", error, why);
        dmn_method_refuse_plan(m, c, both);
    }
}
