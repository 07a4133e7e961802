/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remake.h"

#include "base.h"
#include "daemon/daemon.h"

void dmn_remake_fail(struct dmn_remake *r, const char *error, const char *why)
{
    if (r->call) {
        dmn_call_error(base_take(r->call), error, "why", why);
    }
}

void dmn_remake_reply(struct dmn_remake *r, json_t *parameters)
{
    if (r->call) {
        dmn_call_reply(base_take(r->call), parameters, false);
    } else {
        json_decref(parameters);
    }
}

void dmn_remake_free(struct dmn_remake *r)
{
    if (r->end) {
        r->end(r);
    }
    dmn_load_free(r->load);
    free(r);
}

static void finish(struct dmn_remake *r)
{
    struct dmn_daemon *d = r->daemon;

    for (struct dmn_remake **at = &d->optimises; *at; at = &(*at)->next) {
        if (*at == r) {
            *at = r->next;
            break;
        }
    }
    dmn_remake_free(r);
    dmn_daemon_settle(d);
}

/* The new one takes the old one's place, if that is still there and nothing else changes it. */
static void replace(struct dmn_remake *r)
{
    struct dmn_daemon *d = r->daemon;
    struct dmn_model *old = dmn_model_find(d, r->load->name), *m = NULL;
    char error[MDL_ERROR_MAX];

    if (!old || old->retune || old->switch_call) {
        dmn_remake_fail(r, "Busy",
                        old ? "the model's plan is being changed" : "the model was unloaded");
        return;
    }
    r->load->from_config = old->from_config;
    if (dmn_model_start(d, r->load, r->cause, error, &m) < 0) {
        dmn_remake_fail(r, "LoadFailed", error);
        return;
    }
    dmn_model_move_streams(old, m);
    dmn_model_unload(old, NULL);
    r->serves(r);
}

static void plan_work(uv_work_t *work)
{
    struct dmn_remake *r = work->data;

    r->error = dmn_planner_first(r->load);
}

static void plan_done(uv_work_t *work, int status)
{
    struct dmn_remake *r = work->data;

    if (status < 0 || r->daemon->draining) {
        dmn_remake_fail(r, "Busy", "the daemon is going down");
    } else if (r->error) {
        dmn_remake_fail(r, "LoadFailed", r->load->error);
    } else {
        replace(r);
    }
    finish(r);
}

static void load_work(uv_work_t *work)
{
    struct dmn_remake *r = work->data;

    r->error = r->prepare ? r->prepare(r) : 0;
    if (r->error == 0) {
        r->error = dmn_load_run(r->load);
    }
}

static void load_done(uv_work_t *work, int status)
{
    struct dmn_remake *r = work->data;
    struct dmn_daemon *d = r->daemon;

    if (status < 0 || d->draining) {
        dmn_remake_fail(r, "Busy", "the daemon is going down");
    } else if (r->error < 0) {
        dmn_remake_fail(r, "LoadFailed", r->load->error);
    } else if (r->loaded(r)) {
        r->error = dmn_planner_prepare(d, d->config, r->load);
        if (!r->error && uv_queue_work(&d->loop, &r->work, plan_work, plan_done) == 0) {
            return;
        }
        dmn_remake_fail(r, "LoadFailed", r->error ? r->load->error : "no work thread");
    }
    finish(r);
}

struct dmn_remake *dmn_remake_new(struct dmn_call *c, struct dmn_model *m, const char *cause)
{
    struct dmn_load_source source = dmn_model_source(m);
    struct dmn_daemon *d = c->daemon;
    struct dmn_remake *r;

    if (d->optimises || m->retune || m->switch_call) {
        dmn_call_error(c, "Busy", "why",
                       d->optimises ? "a model is being made anew" : "the plan is being changed");
        return NULL;
    }
    r = calloc(1, sizeof(*r));
    if (!r || !(r->load = dmn_load_from(&source, d))) {
        free(r);
        dmn_call_error(c, "LoadFailed", "why", "out of memory");
        return NULL;
    }
    r->daemon = d;
    r->cause = cause;
    r->work.data = r;
    return r;
}

void dmn_remake_begin(struct dmn_remake *r, struct dmn_call *c)
{
    struct dmn_daemon *d = r->daemon;

    if (uv_queue_work(&d->loop, &r->work, load_work, load_done) < 0) {
        dmn_remake_free(r);
        dmn_call_error(c, "LoadFailed", "why", "no work thread");
        return;
    }
    r->call = c;
    r->next = d->optimises;
    d->optimises = r;
}

void dmn_remake_detach(struct dmn_daemon *d)
{
    for (struct dmn_remake *r = d->optimises; r; r = r->next) {
        dmn_remake_fail(r, "Busy", "the daemon is going down");
        atomic_store_explicit(&r->load->choose.stop, true, memory_order_relaxed);
        uv_cancel((uv_req_t *)&r->work);
    }
}
