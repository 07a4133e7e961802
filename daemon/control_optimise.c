/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Optimise: the primitives of a model are measured anew on a work thread while it serves; the model
 * by the new choice then takes its place as a reload would put it there: its clients go on, and no
 * frame is lost.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

struct dmn_optimise {
    uv_work_t work;
    struct dmn_daemon *daemon;
    struct dmn_optimise *next;
    struct dmn_call *call; /* NULL: nobody waits any more */
    struct dmn_load *load; /* owned */
    bool front;            /* only asked what could be */
    int error;
};

static json_t *chosen_json(const struct krn_chosen *c)
{
    return json_pack("{s:f, s:I, s:I}", "ms", c->ns / 1e6, "packed_bytes",
                     (json_int_t)c->packed_bytes, "inexact", (json_int_t)c->inexact);
}

static json_t *kinds_json(const struct dmn_choose *c)
{
    json_t *list = json_array();

    for (size_t k = 0; c->chosen && k < c->kind_count; k++) {
        json_t *entry = chosen_json(&c->of[c->kinds[k].same]);

        json_object_set_new(entry, "ep", json_string(c->kinds[k].name));
        json_object_set_new(entry, "states",
                            json_integer((json_int_t)c->of[c->kinds[k].same].states));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *front_json(const struct dmn_choose *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->front_count; i++) {
        json_array_append_new(list, chosen_json(&c->front[i]));
    }
    return list;
}

static void reply(struct dmn_optimise *o)
{
    const struct dmn_choose *c = &o->load->choose;

    if (o->call) {
        dmn_call_reply(base_take(o->call),
                       json_pack("{s:{s:s, s:s, s:s, s:f, s:o, s:o, s:o}}", "choice", "model",
                                 o->load->name, "algorithm",
                                 krn_path_name(c->options.path.algorithm), "objective",
                                 c->options.objective == KRN_MEMORY ? "memory" : "latency",
                                 "took_ms", (double)c->took_ns / 1e6, "agreement",
                                 c->calibrate ? json_real(c->agreement) : json_null(), "kinds",
                                 kinds_json(c), "front", front_json(c)),
                       false);
    }
}

static void fail(struct dmn_optimise *o, const char *error, const char *why)
{
    if (o->call) {
        dmn_call_error(base_take(o->call), error, "why", why);
    }
}

static void optimise_free(struct dmn_optimise *o)
{
    struct dmn_daemon *d = o->daemon;

    for (struct dmn_optimise **at = &d->optimises; *at; at = &(*at)->next) {
        if (*at == o) {
            *at = o->next;
            break;
        }
    }
    dmn_load_free(o->load);
    free(o);
    dmn_daemon_settle(d);
}

/* The new one takes the old one's place, if that is still there and nothing else changes it. */
static void replace(struct dmn_optimise *o)
{
    struct dmn_daemon *d = o->daemon;
    struct dmn_model *old = dmn_model_find(d, o->load->name), *m = NULL;
    char error[MDL_ERROR_MAX];

    if (!old || old->retune || old->switch_call) {
        fail(o, "Busy", old ? "the model's plan is being changed" : "the model was unloaded");
        return;
    }
    o->load->from_config = old->from_config;
    if (dmn_model_start(d, o->load, "request", error, &m) < 0) {
        fail(o, "LoadFailed", error);
        return;
    }
    dmn_model_move_streams(old, m);
    dmn_model_unload(old, NULL);
    reply(o);
}

static void plan_work(uv_work_t *work)
{
    struct dmn_optimise *o = work->data;

    o->error = dmn_planner_first(o->load);
}

static void plan_done(uv_work_t *work, int status)
{
    struct dmn_optimise *o = work->data;

    if (status < 0 || o->daemon->draining) {
        fail(o, "Busy", "the daemon is going down");
    } else if (o->error) {
        fail(o, "LoadFailed", o->load->error);
    } else {
        replace(o);
    }
    optimise_free(o);
}

static void load_work(uv_work_t *work)
{
    struct dmn_optimise *o = work->data;

    o->error = dmn_load_run(o->load);
}

static void load_done(uv_work_t *work, int status)
{
    struct dmn_optimise *o = work->data;
    struct dmn_daemon *d = o->daemon;

    if (status == 0 && !d->draining && !o->error && !o->load->choose.chosen) {
        fail(o, "LoadFailed", o->load->choose.note);
    } else if (status == 0 && !d->draining && !o->error && o->front) {
        reply(o);
    } else if (status == 0 && !d->draining && !o->error) {
        o->error = dmn_planner_prepare(d, d->config, o->load);
        if (!o->error && uv_queue_work(&d->loop, &o->work, plan_work, plan_done) == 0) {
            return;
        }
    }
    if (o->call) {
        bool down = status < 0 || d->draining;

        fail(o, down ? "Busy" : "LoadFailed", down ? "the daemon is going down" : o->load->error);
    }
    optimise_free(o);
}

void dmn_optimise_detach(struct dmn_daemon *d)
{
    for (struct dmn_optimise *o = d->optimises; o; o = o->next) {
        fail(o, "Busy", "the daemon is going down");
        atomic_store_explicit(&o->load->choose.stop, true, memory_order_relaxed);
        uv_cancel((uv_req_t *)&o->work);
    }
}

static bool take_number(struct dmn_call *c, const char *key, double least, double most, double *ret)
{
    const json_t *value = json_object_get(c->parameters, key);

    if (!json_is_number(value)) {
        return true;
    }
    if (!(json_number_value(value) >= least && json_number_value(value) <= most)) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", key);
        return false;
    }
    *ret = json_number_value(value);
    return true;
}

static bool take_options(struct dmn_call *c, struct dmn_choose *choose)
{
    const char *algorithm = json_string_value(json_object_get(c->parameters, "algorithm"));
    const char *objective = json_string_value(json_object_get(c->parameters, "objective"));
    struct krn_choose_options *o = &choose->options;
    const char *calibrate = json_string_value(json_object_get(c->parameters, "calibrate"));
    double agreement = 0.99, ms = choose->ms ? choose->ms : 4000, mib = 0, episodes = 0, seed = 1;

    if (algorithm && !krn_path_find(algorithm, &o->path.algorithm)) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "algorithm");
        return false;
    }
    if (objective && strcmp(objective, "memory") != 0 && strcmp(objective, "latency") != 0) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "objective");
        return false;
    }
    if (calibrate && calibrate[0] != '/') {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "calibrate");
        return false;
    }
    if (!take_number(c, "ms", 1, 600000, &ms) || !take_number(c, "agreement", 0, 1, &agreement) ||
        !take_number(c, "packed_mib", 0.001, 1e6, &mib) ||
        !take_number(c, "episodes", 1, 1e6, &episodes) || !take_number(c, "seed", 1, 9e15, &seed)) {
        return false;
    }
    o->objective = objective && strcmp(objective, "memory") == 0 ? KRN_MEMORY : KRN_LATENCY;
    o->exact = !calibrate && !json_is_true(json_object_get(c->parameters, "inexact"));
    o->packed_bytes_max = (size_t)(mib * 1048576);
    o->path.episodes = (size_t)episodes;
    o->path.seed = (uint64_t)seed;
    choose->agreement_min = agreement;
    choose->calibrate = calibrate ? strdup(calibrate) : NULL;
    choose->ms = (unsigned)ms;
    choose->anew = true;
    return true;
}

void dmn_method_optimise(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");
    struct dmn_daemon *d = c->daemon;
    struct dmn_optimise *o;

    if (!m) {
        return;
    }
    if (m->kernels[0]) {
        dmn_call_error(c, "Busy", "why", "the configuration names the model's primitives");
        return;
    }
    if (d->optimises || m->retune || m->switch_call) {
        dmn_call_error(c, "Busy", "why",
                       d->optimises ? "a choice is being made" : "the plan is being changed");
        return;
    }
    o = calloc(1, sizeof(*o));
    if (!o || !(o->load = dmn_load_new(m->name, m->path, m->config_plan, NULL, m->latest, d))) {
        free(o);
        dmn_call_error(c, "LoadFailed", "why", "out of memory");
        return;
    }
    o->daemon = d;
    o->work.data = o;
    o->front = json_is_true(json_object_get(c->parameters, "pareto"));
    o->load->choose.wants_front = o->front;
    if (!take_options(c, &o->load->choose)) {
        dmn_load_free(o->load);
        free(o);
        return;
    }
    if (uv_queue_work(&d->loop, &o->work, load_work, load_done) < 0) {
        dmn_load_free(o->load);
        free(o);
        dmn_call_error(c, "LoadFailed", "why", "no work thread");
        return;
    }
    o->call = c;
    o->next = d->optimises;
    d->optimises = o;
}
