/* SPDX-License-Identifier: Apache-2.0 */
/* GetPlan and SetPlan: which plan, or which route over boards, serves a model; GetMapping and
 * SetMapping: the same as AutoDiCE's mapping.json. */

#include "base/base.h"
#include "daemon/boards/board_model.h"
#include "daemon/config/config.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/machine/machine.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/switch.h"
#include "tuner/json/mapping_json.h"

void dmn_method_get_plan(struct dmn_call *c, struct dmn_model *m)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);
    char plan[PL_PLAN_TEXT_MAX];

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
        dmn_call_error(c, "Busy", "%s",
                       m->planning->retune ? "a retune is in progress"
                                           : "another plan is being set");
        return false;
    }
    return true;
}

/* Answers with InvalidPlan, and names the model: the caller may have named none. */
static void refuse_plan(const struct dmn_model *m, struct dmn_call *c, const char *why)
{
    dmn_call_error(c, "InvalidPlan", "model %s: %s", m->name, why);
}

void dmn_method_cannot_plan(struct dmn_call *c, int error)
{
    dmn_call_error(c, error == -ENOMEM ? "Unsupported" : "InvalidPlan", "%s", strerror(-error));
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
            dmn_boards_set_alone(s->model);
        } else {
            dmn_boards_unset(s->model);
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
        refuse_plan(m, c, "it is too large for this board alone; set a route over boards");
        return;
    }
    s = malloc(sizeof(*s));
    if (!s) {
        dmn_call_error(c, "Unsupported", "out of memory");
        return;
    }
    *s = (struct switch_call){c, m, *plan, origin};
    switch_now(s, NULL);
}

/* @why: DMN_ROUTE_ERROR_MAX bytes. Return: 0, and the call was answered; -EINVAL with @why. */
static int set_route(struct dmn_model *m, struct dmn_call *c, const char *text, char *why)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);
    int r;

    if (!dmn_method_may_switch(m, c)) {
        return 0;
    }
    r = dmn_boards_set(m, text, why);
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

void dmn_method_set_plan(struct dmn_call *c, struct dmn_model *m)
{
    const char *text = dmn_call_text(c, "plan");
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    char error[256], why[DMN_ROUTE_ERROR_MAX];
    struct dmn_route_text route;
    int fits;

    if (!plan) {
        dmn_call_error(c, "Unsupported", "out of memory");
        return;
    }
    fits =
        dmn_eps_plan(c->control->machine, text, m->model->unit_count, error, sizeof(error), plan);
    if (fits == 0) {
        dmn_method_switch(m, c, plan, (struct dmn_origin){.from = DMN_FROM_USER});
    } else if (fits == -EAGAIN) {
        c->control->machine->whole_wanted_ns = base_now_ns();
        dmn_call_error(c, "Busy", "%s; it is joined now: set the plan again in a second", error);
    } else if (!dmn_boards_of(m) || dmn_route_text_parse(text, why, &route) < 0) {
        refuse_plan(m, c, error);
    } else if (set_route(m, c, text, why) < 0) {
        dmn_call_error(c, "InvalidPlan", "model %s: %s; as a route over boards: %s", m->name, error,
                       why);
    }
}

/* ---- mappings ---- */

#define HOST "host" /* how a mapping of one board alone calls it */

struct layers {
    const char **names;                    /* [unit_count], owned */
    uint16_t *of;                          /* [unit_count], owned */
    struct tun_device device[BRD_MAX + 1]; /* this board, then the others */
    size_t count;
};

static void layers_deinit(struct layers *l)
{
    free(l->names);
    free(l->of);
    *l = (struct layers){0};
}

static size_t core_count(const struct brd_state *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->ep_count; i++) {
        count += s->ep[i].cores;
    }
    return count;
}

/* Return: 0 or -ENOMEM. */
static int layers_init(const struct dmn_model *m, const struct brd_link_report_all *r,
                       struct layers *ret)
{
    const struct mdl_model *model = m->model;

    *ret = (struct layers){.names = calloc(model->unit_count, sizeof(*ret->names)),
                           .of = calloc(model->unit_count, sizeof(*ret->of)),
                           .device = {{DMN_BOARD_HERE, r ? core_count(&r->self) : 0}},
                           .count = 1};
    if (!ret->names || !ret->of) {
        layers_deinit(ret);
        return -ENOMEM;
    }
    for (size_t u = 0; u < model->unit_count; u++) {
        ret->names[u] = model->units[u].name;
    }
    for (size_t i = 0; r && i < r->board_count; i++) {
        ret->device[ret->count++] = (struct tun_device){r->board[i].name, core_count(&r->board[i])};
    }
    return 0;
}

/* ---- GetMapping ---- */

/* Sets the unit's devices from a route as text. */
static int take_route(const char *text, struct layers *l, char *error)
{
    struct dmn_route_text route;

    if (dmn_route_text_parse(text, error, &route) < 0) {
        return -EINVAL;
    }
    for (size_t h = 0; h < route.hop_count; h++) {
        size_t d = 0;

        if (route.hop[h].board_count > 1) {
            snprintf(error, TUN_ERROR_MAX,
                     "%s and %s share units %u-%u; a mapping has one board for each layer",
                     route.hop[h].board[0].name, route.hop[h].board[1].name,
                     route.hop[h].first_unit, route.hop[h].last_unit);
            return -EINVAL;
        }
        while (d < l->count && strcmp(l->device[d].name, route.hop[h].board[0].name) != 0) {
            d++;
        }
        if (d == l->count) {
            snprintf(error, TUN_ERROR_MAX, "board %s is no longer on the list of boards",
                     route.hop[h].board[0].name);
            return -EINVAL;
        }
        for (size_t u = route.hop[h].first_unit; u <= route.hop[h].last_unit; u++) {
            l->of[u] = (uint16_t)d;
        }
    }
    return 0;
}

void dmn_method_get_mapping(struct dmn_call *c, struct dmn_model *m)
{
    const struct dmn_board_model *bm = dmn_boards_of(m);
    base_cleanup(layers_deinit) struct layers l = {0};
    char error[TUN_ERROR_MAX] = "", plan[PL_PLAN_TEXT_MAX];
    int r = layers_init(m, c->control->boards->report, &l);
    json_t *mapping = NULL;

    dmn_model_plan_text(m, plan);
    if (!r && bm && bm->serving) {
        snprintf(plan, sizeof(plan), "%s", bm->text);
        r = take_route(bm->text, &l, error);
        r = r ? r
              : tun_devices_json(l.device, l.count, l.of, l.names, m->model->unit_count, error,
                                 &mapping);
    } else if (!r) {
        r = tun_mapping_json(&m->planning->problem, pl_current_plan(m->pipe), l.names, error,
                             &mapping);
    }
    if (r) {
        dmn_call_error(c, "Unsupported", "%s%s", error[0] ? error : "out of memory",
                       error[0] ? "; pipectl plan set takes another plan or route" : "");
    } else {
        dmn_call_reply(c, json_pack("{s:o, s:s}", "mapping", mapping, "plan", plan), false);
    }
}

/* ---- SetMapping ---- */

static bool is_name_of(const struct mdl_model *m, const char *name)
{
    for (size_t u = 0; u < m->unit_count; u++) {
        if (strcmp(m->units[u].name, name) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < m->op_count; i++) {
        if (m->ops[i].name && strcmp(m->ops[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Return: the first layer of the mapping that is not an operator of the model; NULL: all are. It
 * may still be one that became a part of another operator. @ret_count: how many. */
static const char *passed_over(const struct mdl_model *m, const json_t *root, size_t *ret_count)
{
    const char *first = NULL, *key;
    json_t *layers;

    *ret_count = 0;
    json_object_foreach((json_t *)(uintptr_t)root, key, layers)
    {
        json_text_each(layers, i, layer) {
            const char *name = json_string_value(layer);

            if (name && !is_name_of(m, name)) {
                first = first ? first : name;
                ++*ret_count;
            }
        }
    }
    return first;
}

/* Does the mapping have one device, which is this board? @any: whatever it is called. */
static bool is_here(const json_t *root, bool any)
{
    const char *first = NULL, *key;
    json_t *layers;

    json_object_foreach((json_t *)(uintptr_t)root, key, layers)
    {
        size_t n = strcspn(key, "_");

        if (first && (strcspn(first, "_") != n || strncmp(first, key, n) != 0)) {
            return false;
        }
        if (!any && !(n == strlen(HOST) && strncmp(key, HOST, n) == 0) &&
            !(n == strlen(DMN_BOARD_HERE) && strncmp(key, DMN_BOARD_HERE, n) == 0)) {
            return false;
        }
        first = key;
    }
    return true;
}

static void route_text(const struct layers *l, size_t unit_count, char ret[PL_PLAN_TEXT_MAX])
{
    ret[0] = '\0';
    for (size_t u = 0, last; u < unit_count; u = last + 1) {
        for (last = u; last + 1 < unit_count && l->of[last + 1] == l->of[u]; last++) {
        }
        base_append(ret, PL_PLAN_TEXT_MAX, "%s%zu-%zu@%s", u ? "|" : "", u, last,
                    l->device[l->of[u]].name);
    }
}

/* Adds to an error what the mapping has beside the model. */
static void refuse_mapping(struct dmn_call *c, const struct dmn_model *m, const json_t *root,
                           char *error)
{
    size_t count;
    const char *name = passed_over(m->model, root, &count);

    if (name) {
        base_append(error, TUN_READER_ERROR_MAX,
                    "; the mapping has \"%.60s\", which is not an operator of the model; pipectl "
                    "units lists the names",
                    name);
    }
    refuse_plan(m, c, error[0] ? error : "out of memory");
}

void dmn_method_set_mapping(struct dmn_call *c, struct dmn_model *m)
{
    const json_t *root = json_object_get(c->parameters, "mapping");
    char error[TUN_READER_ERROR_MAX] = "", text[PL_PLAN_TEXT_MAX] = "";
    struct tun_reader r = {.path = "mapping", .error = error};
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    base_cleanup(layers_deinit) struct layers l = {0};
    bool spread = dmn_boards_of(m);

    if (!plan || layers_init(m, c->control->boards->report, &l) < 0) {
        refuse_mapping(c, m, root, error);
        return;
    }
    if (is_here(root, !spread)) {
        tun_mapping_read(&r, root, &m->planning->problem, l.names, plan);
    } else if (spread) {
        tun_devices_read(&r, root, l.device, l.count, l.names, m->model->unit_count, l.of);
    } else {
        tun_wrong(&r, "",
                  "has several devices, but the model's key boards is \"" DMN_BOARDS_OFF
                  "\"; set it to \"" DMN_BOARDS_AUTO "\" and reload");
    }
    if (error[0]) {
        refuse_mapping(c, m, root, error);
    } else if (is_here(root, !spread)) {
        dmn_method_switch(m, c, plan, (struct dmn_origin){.from = DMN_FROM_USER});
    } else {
        route_text(&l, m->model->unit_count, text);
        if (set_route(m, c, text, error) < 0) {
            refuse_plan(m, c, error);
        }
    }
}
