/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reload in three steps: the new configuration is read and checked; what it names anew is loaded
 * on a work thread; only when all of that stands is anything changed. Whatever fails before leaves
 * everything as it was.
 */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

struct dmn_reload {
    uv_work_t work;
    struct dmn_daemon *daemon;
    struct dmn_call *call;     /* NULL: by signal, or nobody waits any more */
    struct dmn_config *config; /* owned, the new one */
    size_t load_count;
    struct dmn_load **loads; /* owned: models that are new or changed */
    char error[DMN_CONFIG_ERROR_MAX];
    bool failed;
};

static void reload_free(struct dmn_reload *r)
{
    for (size_t i = 0; i < r->load_count; i++) {
        dmn_load_free(r->loads[i]);
    }
    free(r->loads);
    dmn_config_free(r->config);
    free(r);
}

static void end(struct dmn_reload *r, bool good)
{
    struct dmn_daemon *d = r->daemon;

    d->reload = NULL;
    if (good) {
        d->reloads++;
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_RELOADED},
                     "configuration read again");
    } else {
        d->reload_failures++;
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_RELOAD_FAILED},
                     "the reload failed, nothing was changed: %s", r->error);
    }
    if (r->call && good) {
        dmn_call_reply(base_take(r->call), NULL, false);
    } else if (r->call) {
        dmn_call_error(base_take(r->call), "ReloadFailed", "why", r->error);
    }
    if (!d->draining) {
        dmn_notify(&d->notify, "READY=1");
        d->status_text[0] = '\0'; /* say it again */
        dmn_daemon_status(d);
    }
    reload_free(r);
}

/* Only what a model is made from; its plan is looked at on its own. */
static bool unchanged(const struct dmn_model *m, const struct dmn_config_model *c)
{
    struct dmn_stamp now = dmn_stamp_read(c->path, c->calibration);

    return m && strcmp(m->path, c->path) == 0 && strcmp(m->kernels, c->kernels) == 0 &&
           strcmp(m->calibration, c->calibration) == 0 && memcmp(&now, &m->stamp, sizeof(now)) == 0;
}

static int check_plan(struct dmn_reload *r, const struct dmn_model *m,
                      const struct dmn_config_model *c, struct pl_plan *ret)
{
    char why[256];

    if (pl_plan_parse(c->plan, pl_current_eps(m->pipe), m->model->unit_count, why, sizeof(why),
                      ret) < 0) {
        snprintf(r->error, sizeof(r->error), "%.300s:%zu: models[%s].plan: %s",
                 r->config->files[c->origin], c->line, c->name, why);
        return -EINVAL;
    }
    return 0;
}

static int collect_loads(struct dmn_reload *r)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    struct dmn_daemon *d = r->daemon;

    r->loads = calloc(r->config->model_count + 1, sizeof(*r->loads));
    if (!r->loads || !plan) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < r->config->model_count; i++) {
        const struct dmn_config_model *c = &r->config->models[i];
        struct dmn_model *m = dmn_model_find(d, c->name);
        struct dmn_load_source source;
        struct dmn_load *l;

        if (unchanged(m, c)) {
            if (c->plan[0] && check_plan(r, m, c, plan) < 0) {
                return -EINVAL;
            }
            continue;
        }
        source = dmn_config_source(c);
        l = dmn_load_from(&source, d);
        if (!l) {
            return -ENOMEM;
        }
        l->from_config = true;
        r->loads[r->load_count++] = l;
    }
    return 0;
}

static void name_failure(struct dmn_reload *r, const struct dmn_load *l)
{
    snprintf(r->error, sizeof(r->error), "model %s from %.300s: %s", l->name, l->path, l->error);
}

static void load_work(uv_work_t *work)
{
    struct dmn_reload *r = work->data;

    for (size_t i = 0; i < r->load_count && !r->failed; i++) {
        struct dmn_load *l = r->loads[i];

        if (dmn_load_run(l) < 0) {
            name_failure(r, l);
            r->failed = true;
        }
    }
}

/* Starts every new model; on failure takes them all down again. */
static bool start_all(struct dmn_reload *r, struct dmn_model **started)
{
    char error[MDL_ERROR_MAX];

    for (size_t i = 0; i < r->load_count; i++) {
        if (dmn_model_start(r->daemon, r->loads[i], "config", error, &started[i]) < 0) {
            snprintf(r->error, sizeof(r->error), "model %s: %s", r->loads[i]->name, error);
            while (i-- > 0) {
                dmn_model_destroy(started[i]);
            }
            return false;
        }
    }
    return true;
}

static bool in_config(const struct dmn_config *c, const char *name)
{
    for (size_t i = 0; i < c->model_count; i++) {
        if (strcmp(c->models[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Old models give way to new ones of the same name; those no longer named go. */
static void replace_models(struct dmn_reload *r, struct dmn_model **started)
{
    struct dmn_daemon *d = r->daemon;
    struct dmn_model *next;

    for (struct dmn_model *m = d->models; m; m = next) {
        struct dmn_model *by = NULL;

        next = m->next;
        for (size_t i = 0; i < r->load_count; i++) {
            if (started[i] == m) {
                by = m;
                break;
            }
            if (strcmp(started[i]->name, m->name) == 0) {
                by = started[i];
            }
        }
        if (by == m || (!by && (!m->from_config || in_config(r->config, m->name)))) {
            continue;
        }
        if (by && dmn_model_move_streams(m, by)) {
            dmn_log_with(LOG_INFO, (struct dmn_log_fields){.model = m->name},
                         "model %s: its clients go on with the new one", m->name);
        }
        dmn_model_unload(m, NULL);
    }
}

static void apply_kept(struct dmn_reload *r)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));

    for (size_t i = 0; i < r->config->model_count && plan; i++) {
        const struct dmn_config_model *c = &r->config->models[i];
        struct dmn_model *m = dmn_model_find(r->daemon, c->name);
        char *copy;

        if (!m) {
            continue;
        }
        m->latest = c->latest;
        if (strcmp(m->config_plan, c->plan) == 0) {
            continue;
        }
        if (c->plan[0] && (m->retune || check_plan(r, m, c, plan) < 0 ||
                           dmn_model_set_plan(m, plan, "config", "config", "reload") != 0)) {
            dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                         "model %s: its plan could not be set now; reload again", m->name);
            continue; /* the next reload sees a change again */
        }
        copy = strdup(c->plan);
        if (copy) {
            free(m->config_plan);
            m->config_plan = copy;
        }
    }
}

static bool same_eps(const struct dmn_config *a, const struct dmn_config *b)
{
    bool same = a->ep_count == b->ep_count;

    for (size_t i = 0; same && i < a->ep_count; i++) {
        same = strcmp(a->eps[i].name, b->eps[i].name) == 0 &&
               strcmp(a->eps[i].cpus, b->eps[i].cpus) == 0 && a->eps[i].speed == b->eps[i].speed &&
               a->eps[i].watts == b->eps[i].watts;
    }
    return same;
}

static void note_restart_keys(const struct dmn_config *old, const struct dmn_config *new)
{
    const struct dmn_config_row *rows;
    size_t count;

    rows = dmn_config_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct dmn_config_value *a = &old->values[i], *b = &new->values[i];

        if (rows[i].restart &&
            (a->number != b->number || strcmp(a->text ? a->text : "", b->text ? b->text : ""))) {
            dmn_log(LOG_NOTICE, "%s takes effect at the next start", rows[i].key);
        }
    }
    if (!same_eps(old, new)) {
        dmn_log(LOG_NOTICE, "eps takes effect at the next start");
    }
}

static void apply(struct dmn_reload *r, struct dmn_model **started)
{
    struct dmn_daemon *d = r->daemon;
    struct dmn_config *old = d->config;

    replace_models(r, started);
    apply_kept(r);
    note_restart_keys(old, r->config);
    d->config = base_take(r->config);
    dmn_config_free(old);
    d->failed_models = 0;
    if (!d->args->verbose) {
        dmn_log_level(LOG_ERR + (int)dmn_config_int(d->config, DMN_KEY_LOG_LEVEL));
    }
    dmn_sensors_configure(d);
    dmn_adapt_configure(d);
}

/* The end of a reload whose models are loaded and planned, or failed. */
static void plan_done(uv_work_t *work, int status)
{
    struct dmn_reload *r = work->data;
    struct dmn_daemon *d = r->daemon;
    base_autofree struct dmn_model **started =
        calloc(r->load_count + 1, sizeof(struct dmn_model *));
    bool good = !r->failed && status == 0 && !d->draining && started;

    if (!good && !r->failed) {
        snprintf(r->error, sizeof(r->error), "the daemon is going down");
    }
    good = good && start_all(r, started);
    if (good) {
        apply(r, started);
    }
    end(r, good);
    dmn_daemon_settle(d);
}

static void plan_work(uv_work_t *work)
{
    struct dmn_reload *r = work->data;

    for (size_t i = 0; i < r->load_count && !r->failed; i++) {
        r->failed = dmn_planner_first(r->loads[i]) < 0;
        if (r->failed) {
            name_failure(r, r->loads[i]);
        }
    }
}

/* What is known of the models comes together on the loop; plans are thought out on a work thread.
 */
static void load_done(uv_work_t *work, int status)
{
    struct dmn_reload *r = work->data;
    struct dmn_daemon *d = r->daemon;

    for (size_t i = 0; i < r->load_count && status == 0 && !r->failed && !d->draining; i++) {
        r->failed = dmn_planner_prepare(d, r->config, r->loads[i]) < 0;
        if (r->failed) {
            name_failure(r, r->loads[i]);
        }
    }
    if (status < 0 || r->failed || d->draining ||
        uv_queue_work(&d->loop, &r->work, plan_work, plan_done) < 0) {
        plan_done(work, status);
    }
}

void dmn_reload_begin(struct dmn_daemon *d, struct dmn_call *call)
{
    struct dmn_reload *r;
    char text[96];
    int error;

    if (d->reload || d->draining) {
        dmn_log(LOG_NOTICE, "a reload was asked for while %s: ignored",
                d->draining ? "stopping" : "another one is under way");
        return;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        if (call) {
            dmn_call_error(call, "ReloadFailed", "why", "out of memory");
        }
        return;
    }
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(base_now_ns() / 1000));
    dmn_notify(&d->notify, text);
    r->daemon = d;
    r->call = call;
    d->reload = r;
    error = dmn_config_from_args(d->args, r->error, &r->config);
    if (!error) {
        snprintf(r->error, sizeof(r->error), "out of memory");
        error = collect_loads(r);
    }
    r->work.data = r;
    if (!error) {
        error = uv_queue_work(&d->loop, &r->work, load_work, load_done);
    }
    if (error) {
        end(r, false);
    }
}

void dmn_reload_cancel(struct dmn_daemon *d)
{
    if (d->reload) {
        if (d->reload->call) {
            dmn_call_error(base_take(d->reload->call), "Busy", "why", "the daemon is going down");
        }
        uv_cancel((uv_req_t *)&d->reload->work);
    }
}
