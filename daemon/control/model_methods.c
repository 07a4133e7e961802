/* SPDX-License-Identifier: Apache-2.0 */
/* Methods about one model: loading, plans, measurements. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

static const char *text(struct dmn_call *c, const char *key)
{
    return json_string_value(json_object_get(c->parameters, key));
}

struct dmn_model *dmn_call_model(struct dmn_call *c, const char *key)
{
    const char *name = text(c, key);
    struct dmn_model *m =
        name && *name ? dmn_model_find(c->daemon, name) : dmn_model_default(c->daemon);

    if (!m) {
        char what[160];

        snprintf(what, sizeof(what), "model \"%.100s\"", name ? name : "");
        dmn_call_error(c, "NotFound", "what", what);
    }
    return m;
}

/* A model on its way in; the file is read and compiled on a work thread. */
struct dmn_load_call {
    uv_work_t work;
    struct dmn_daemon *daemon;
    struct dmn_load_call *next;
    struct dmn_load *load; /* owned */
    struct dmn_call *call; /* NULL: nobody waits any more */
    int error;
};

static void load_work(uv_work_t *work)
{
    struct dmn_load_call *l = work->data;

    l->error = dmn_load_run(l->load);
}

/* The end of a Load, one way or the other. */
static void load_end(struct dmn_load_call *l, int status)
{
    struct dmn_daemon *d = l->daemon;
    char error[MDL_ERROR_MAX] = "";
    struct dmn_model *m = NULL;
    struct dmn_call *call = l->call;

    for (struct dmn_load_call **at = &d->loads; *at; at = &(*at)->next) {
        if (*at == l) {
            *at = l->next;
            break;
        }
    }
    if (status < 0 || d->draining) {
        snprintf(error, sizeof(error), "the daemon is going down");
    } else if (l->error) {
        snprintf(error, sizeof(error), "%s", l->load->error);
    } else if (dmn_model_find(d, l->load->name)) {
        snprintf(error, sizeof(error), "a model of that name was loaded meanwhile");
    } else {
        dmn_model_start(d, l->load, "request", error, &m);
    }
    if (!m) {
        dmn_log_with(LOG_WARNING,
                     (struct dmn_log_fields){.id = DMN_MSG_MODEL_FAILED, .model = l->load->name},
                     "model %s from %s was refused: %s", l->load->name, l->load->path, error);
    }
    if (call && m) {
        dmn_call_reply(call, json_pack("{s:o}", "model", dmn_model_json(m)), false);
    } else if (call) {
        dmn_call_error(call, "LoadFailed", "why", error);
    }
    dmn_load_free(l->load);
    free(l);
    dmn_daemon_settle(d);
}

static void plan_work(uv_work_t *work)
{
    struct dmn_load_call *l = work->data;

    l->error = dmn_planner_first(l->load);
}

static void plan_done(uv_work_t *work, int status)
{
    load_end(work->data, status);
}

/* The file is read; its plan is thought out on a work thread too. */
static void load_done(uv_work_t *work, int status)
{
    struct dmn_load_call *l = work->data;
    struct dmn_daemon *d = l->daemon;

    if (status == 0 && !l->error && !d->draining) {
        l->error = dmn_planner_prepare(d, d->config, l->load);
        if (!l->error && uv_queue_work(&d->loop, &l->work, plan_work, plan_done) == 0) {
            return;
        }
    }
    load_end(l, status);
}

void dmn_loads_detach(struct dmn_daemon *d)
{
    for (struct dmn_load_call *l = d->loads; l; l = l->next) {
        if (l->call) {
            dmn_call_error(base_take(l->call), "Busy", "why", "the daemon is going down");
        }
        atomic_store_explicit(&l->load->choose.stop, true, memory_order_relaxed);
        uv_cancel((uv_req_t *)&l->work);
    }
}

static bool being_loaded(const struct dmn_daemon *d, const char *name, size_t *ret_count)
{
    bool same = false;

    *ret_count = 0;
    for (const struct dmn_load_call *l = d->loads; l; l = l->next) {
        same |= strcmp(l->load->name, name) == 0;
        ++*ret_count;
    }
    return same;
}

void dmn_method_load(struct dmn_call *c)
{
    const char *name = text(c, "name"), *path = text(c, "path"), *plan = text(c, "plan");
    struct dmn_load_source source = {.name = name, .path = path, .plan = plan};
    struct dmn_daemon *d = c->daemon;
    struct dmn_load_call *l;
    size_t loading;

    if (!dmn_config_name_ok(name)) {
        dmn_call_error(c, "LoadFailed", "why",
                       "that is no model name (letters, digits, '.', '_', '-', at most 63)");
        return;
    }
    if (path[0] != '/' || strlen(path) >= 4096) {
        dmn_call_error(c, "LoadFailed", "why", "the path must be absolute and below 4096 bytes");
        return;
    }
    if (being_loaded(d, name, &loading) || dmn_model_find(d, name)) {
        dmn_call_error(c, "Busy", "why", "a model of that name is there already");
        return;
    }
    if (dmn_model_count(d) + loading >= (size_t)dmn_config_int(d->config, DMN_KEY_LIMIT_MODELS)) {
        dmn_call_error(c, "LoadFailed", "why", "too many models (limits.models)");
        return;
    }
    l = calloc(1, sizeof(*l));
    if (!l || !(l->load = dmn_load_from(&source, d))) {
        free(l);
        dmn_call_error(c, "LoadFailed", "why", "out of memory");
        return;
    }
    l->daemon = d;
    l->call = c;
    l->work.data = l;
    if (uv_queue_work(&d->loop, &l->work, load_work, load_done) < 0) {
        dmn_load_free(l->load);
        free(l);
        dmn_call_error(c, "LoadFailed", "why", "no work thread");
        return;
    }
    l->next = d->loads;
    d->loads = l;
}

void dmn_method_unload(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "name");

    if (m) {
        dmn_model_unload(m, c);
    }
}

void dmn_method_get_plan(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");
    char plan[PL_PLAN_TEXT_MAX];

    if (!m) {
        return;
    }
    dmn_model_plan_text(m, plan);
    dmn_call_reply(c,
                   json_pack("{s:s, s:s, s:I, s:o}", "plan", plan, "algorithm", m->algorithm,
                             "epoch", (json_int_t)pl_epoch(m->pipe), "warnings",
                             dmn_model_warnings_json(m)),
                   false);
}

bool dmn_method_may_switch(const struct dmn_model *m, struct dmn_call *c)
{
    if (m->retune || m->switch_call) {
        dmn_call_error(c, "Busy", "why",
                       m->retune ? "a retune is under way" : "another plan is being set");
        return false;
    }
    return true;
}

void dmn_method_switch(struct dmn_model *m, struct dmn_call *c, const struct pl_plan *plan,
                       const char *algorithm)
{
    int error;

    if (!dmn_method_may_switch(m, c)) {
        return;
    }
    error = dmn_model_set_plan(m, plan, algorithm, "request", c->method);
    if (error == PL_E_BUSY) {
        dmn_call_error(c, "Busy", "why", "the plan before still runs dry");
    } else if (error) {
        dmn_call_error(c, "InvalidPlan", "why", strerror(error < 0 ? -error : ENOTRECOVERABLE));
    } else {
        m->switch_call = c; /* dmn_model_after() answers it */
    }
}

void dmn_method_set_plan(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    char error[256] = "out of memory";

    if (!m) {
        return;
    }
    if (!plan || pl_plan_parse(text(c, "plan"), pl_current_eps(m->pipe), m->model->unit_count,
                               error, sizeof(error), plan) < 0) {
        dmn_call_error(c, "InvalidPlan", "why", error);
        return;
    }
    dmn_method_switch(m, c, plan, "manual");
}

void dmn_method_units(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");

    if (m) {
        dmn_call_reply(c, json_pack("{s:o}", "units", dmn_model_units_json(m)), false);
    }
}

void dmn_method_status(struct dmn_call *c)
{
    const char *name = text(c, "model");

    if (!name || !*name) {
        dmn_call_reply(c, json_pack("{s:o}", "status", dmn_status_json(c->daemon, NULL)), false);
    } else if (dmn_call_model(c, "model")) {
        dmn_call_reply(c, json_pack("{s:o}", "status", dmn_status_json(c->daemon, name)), false);
    }
}

void dmn_method_history(struct dmn_call *c)
{
    json_int_t limit = json_integer_value(json_object_get(c->parameters, "limit"));
    const char *name = text(c, "model");

    if (json_is_integer(json_object_get(c->parameters, "limit")) && limit < 0) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "limit");
        return;
    }
    if (!json_is_integer(json_object_get(c->parameters, "limit"))) {
        limit = INT32_MAX;
    }
    dmn_call_reply(c,
                   json_pack("{s:o}", "events",
                             dmn_history_json(&c->daemon->history, name && *name ? name : NULL,
                                              (size_t)limit)),
                   false);
}

void dmn_method_models(struct dmn_call *c)
{
    json_t *list = json_array();

    for (const struct dmn_model *m = c->daemon->models; m; m = m->next) {
        json_array_append_new(list, dmn_model_json(m));
    }
    dmn_call_reply(c, json_pack("{s:o}", "models", list), false);
}

void dmn_method_metrics(struct dmn_call *c)
{
    base_autofree char *metrics = dmn_metrics_text(c->daemon);

    dmn_call_reply(c, json_pack("{s:s}", "text", metrics ? metrics : ""), false);
}

void dmn_method_config(struct dmn_call *c)
{
    dmn_call_reply(c, json_pack("{s:o}", "config", dmn_config_json(c->daemon->config)), false);
}

void dmn_method_reload(struct dmn_call *c)
{
    if (c->daemon->reload) {
        dmn_call_error(c, "Busy", "why", "a reload is under way");
        return;
    }
    dmn_reload_begin(c->daemon, c);
}

void dmn_method_subscribe(struct dmn_call *c)
{
    c->subscribed = true;
    c->next_subscriber = c->daemon->control.subscribers;
    c->daemon->control.subscribers = c;
    dmn_call_reply(c,
                   json_pack("{s:{s:s, s:s}}", "event", "event", "subscribed", "state",
                             dmn_daemon_state(c->daemon)),
                   true);
}
