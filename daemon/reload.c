/* SPDX-License-Identifier: Apache-2.0 */
/* A reload has three steps. The new configuration is read and checked. A work thread loads the
 * models that are new or changed. Only when all of that has succeeded is anything changed; a
 * failure leaves everything as it was. A model that could not be loaded before is tried again, and
 * holds up nothing if it still cannot. */

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/machine/machine.h"
#include "daemon/models/arrival.h"
#include "daemon/plans/plans.h"
#include "daemon/service/log.h"

struct dmn_reload {
    struct dmn_arrival arrival;
    struct dmn_daemon *daemon;
    struct dmn_done done;       /* the requester; a signal has none */
    struct dmn_config *config;  /* owned, the new one */
    struct dmn_users users;     /* by its names */
    struct dmn_machine restart; /* as the next start would find it */
    bool binds;                 /* the daemon made a socket itself */
    gid_t group;                /* of the sockets */
    size_t load_count;
    struct dmn_load **loads; /* owned: new or changed models, in the configuration's order */
    bool *judged;            /* owned: such a load is for its error only */
    char error[DMN_CONFIG_ERROR_MAX];
};

static void begin(struct dmn_daemon *d, struct dmn_done done);

static void reload_free(struct dmn_reload *r)
{
    for (size_t i = 0; i < r->load_count; i++) {
        dmn_load_free(r->loads[i]);
    }
    free(r->loads);
    free(r->judged);
    dmn_machine_deinit(&r->restart);
    dmn_config_free(r->config);
    free(r);
}

static void end(struct dmn_reload *r, bool good)
{
    struct dmn_daemon *d = r->daemon;

    d->reload = NULL;
    if (good) {
        d->host.reloads++;
        dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.id = DMN_MSG_RELOADED},
                     "configuration reloaded");
    } else {
        d->host.reload_failures++;
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_RELOAD_FAILED},
                     "reload failed, nothing was changed: %s", r->error);
    }
    dmn_done(&r->done,
             good ? NULL : &(struct dmn_outcome){.reason = DMN_REFUSED_RELOAD, .text = r->error});
    if (!d->draining) {
        dmn_notify(&d->notify, "READY=1");
        d->status_text[0] = '\0'; /* send STATUS= again */
        dmn_daemon_status(d);
    }
    reload_free(r);
    if (d->reload_next) {
        struct dmn_done done = d->reload_next_done;

        d->reload_next = false;
        d->reload_next_done = (struct dmn_done){0};
        if (d->draining) {
            dmn_refuse(&done, DMN_REFUSED_BUSY, "the daemon is stopping");
        } else {
            begin(d, done);
        }
    }
}

/* Another reload calls off the loads of the one in progress, and follows it. Return: false: two do
 * already, or the daemon is stopping. */
static bool follow(struct dmn_daemon *d, struct dmn_done done)
{
    if (d->reload_next || d->draining) {
        return false;
    }
    d->reload_next = true;
    d->reload_next_done = done;
    dmn_arrival_cancel(&d->reload->arrival, "another reload took its place");
    return true;
}

/* Compares only what a model is made from; apply_kept() handles its plan. */
static bool unchanged(const struct dmn_model *m, const struct dmn_config_model *c)
{
    return m && strcmp(m->path, c->path) == 0 && strcmp(m->kernels, c->kernels) == 0 &&
           strcmp(m->calibration, c->calibration) == 0 && strcmp(m->shapes, c->shapes) == 0 &&
           dmn_model_unchanged(m);
}

static bool limits_lowered(const struct dmn_config *old, const struct dmn_config *new)
{
    return dmn_config_int(new, DMN_KEY_LIMIT_WEIGHT_MIB) <
               dmn_config_int(old, DMN_KEY_LIMIT_WEIGHT_MIB) ||
           dmn_config_int(new, DMN_KEY_LIMIT_ARENA_MIB) <
               dmn_config_int(old, DMN_KEY_LIMIT_ARENA_MIB);
}

/* Loads what is new or changed. What is unchanged is loaded, too, if the next start may refuse it
 * for its size; then it is only judged. */
static int collect_loads(struct dmn_reload *r)
{
    struct dmn_daemon *d = r->daemon;
    bool judge = limits_lowered(d->config, r->config);

    r->loads = calloc(r->config->model_count + 1, sizeof(*r->loads));
    r->judged = calloc(r->config->model_count + 1, sizeof(*r->judged));
    if (!r->loads || !r->judged) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < r->config->model_count; i++) {
        const struct dmn_config_model *c = &r->config->models[i];
        const struct dmn_failed_model *failed = dmn_failed_find(&d->models.failed, c->name);
        bool same = unchanged(dmn_model_find(&d->models, c->name), c);
        struct dmn_load_source source = dmn_config_source(c);
        struct dmn_load *l;

        if (same && !judge) {
            continue;
        }
        source.config = r->config;
        l = dmn_load_from(&source, &d->models);
        if (!l) {
            return -ENOMEM;
        }
        l->from_config = true;
        l->may_fail = failed && strcmp(failed->path, c->path) == 0; /* it did before */
        if (same) {
            l->choose.pack = KRN_PACK_NOTHING;
            l->choose.ms = 0;
        }
        r->judged[r->load_count] = same;
        r->loads[r->load_count++] = l;
    }
    return 0;
}

/* Work thread: the user database may be on a network. */
static int judge_machine(struct dmn_arrival *a)
{
    struct dmn_reload *r = base_container_of(a, struct dmn_reload, arrival);

    dmn_users_look_up(dmn_config_string(r->config, DMN_KEY_ADMIN_GROUP), &r->users);
    return dmn_validate(&r->restart, r->binds, r->error, &r->group);
}

/* Judges the plan of a model by the EPs of the next start. If the present EPs differ so much that
 * it does not fit them, it waits. */
static bool judge_plan(struct dmn_reload *r, const struct dmn_config_model *c, struct dmn_load *l,
                       struct pl_plan *plan)
{
    const struct dmn_daemon *d = r->daemon;
    const struct dmn_model *m = dmn_model_find(&d->models, c->name);
    size_t units = l ? l->model->unit_count : m ? m->model->unit_count : 0;
    char unused[DMN_CONFIG_ERROR_MAX];

    if (!l && !m) { /* unloaded meanwhile */
        return true;
    }
    if (dmn_validate_plan(r->config, c, &r->restart.eps, units, r->error, plan) < 0) {
        return false;
    }
    if (l &&
        dmn_validate_plan(r->config, c, dmn_machine_whole(&d->machine), units, unused, plan) < 0) {
        l->plan[0] = '\0';
    }
    return true;
}

/* Everything is loaded. Return: all plans can be served by a restart; false, with r->error. */
static bool judge_plans(struct dmn_arrival *a)
{
    struct dmn_reload *r = base_container_of(a, struct dmn_reload, arrival);
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));

    if (!plan) {
        snprintf(r->error, sizeof(r->error), "out of memory");
        return false;
    }
    for (size_t i = 0, l = 0; i < r->config->model_count; i++) {
        const struct dmn_config_model *c = &r->config->models[i];
        bool loaded = l < r->load_count && strcmp(r->loads[l]->name, c->name) == 0;

        if (c->plan[0] && !(loaded && r->loads[l]->failed) &&
            !judge_plan(r, c, loaded ? r->loads[l] : NULL, plan)) {
            return false;
        }
        l += loaded;
    }
    return true;
}

/* Starts every new model; on failure unloads them all again. */
static bool start_all(struct dmn_reload *r, struct dmn_model **started)
{
    char error[MDL_ERROR_MAX];

    for (size_t i = 0; i < r->load_count; i++) {
        const struct dmn_load *l = r->loads[i];

        if (r->judged[i] || l->failed ||
            dmn_model_start(&r->daemon->models, r->loads[i], DMN_CAUSE_CONFIG, error,
                            &started[i]) == 0) {
            continue;
        }
        dmn_validate_fault(r->config, dmn_config_find_model(r->config, l->name), "path", error,
                           r->error);
        while (i-- > 0) {
            if (started[i]) {
                dmn_model_destroy(started[i]);
            }
        }
        return false;
    }
    return true;
}

/* Replaces models by new ones of the same name; unloads those that are no longer configured. */
static void replace_models(struct dmn_reload *r, struct dmn_model **started)
{
    struct dmn_daemon *d = r->daemon;
    struct dmn_model *next;

    for (struct dmn_model *m = d->models.models; m; m = next) {
        struct dmn_model *by = NULL;

        next = m->next;
        for (size_t i = 0; i < r->load_count; i++) {
            if (started[i] == m) {
                by = m;
                break;
            }
            if (started[i] && strcmp(started[i]->name, m->name) == 0) {
                by = started[i];
            }
        }
        if (by == m || (!by && (!m->from_config || dmn_config_find_model(r->config, m->name)))) {
            continue;
        }
        if (by && dmn_model_replace(m, by)) {
            dmn_log_with(LOG_INFO, (struct dmn_log_fields){.model = m->name},
                         "model %s: its clients go on with the new one", m->name);
        }
        dmn_model_unload(m, (struct dmn_done){0});
    }
}

/* @text: was validated. @plan: room for it. */
static int set_plan(struct dmn_model *m, const char *text, struct pl_plan *plan)
{
    struct dmn_machine *machine = m->planning->of->machine;
    char unused[DMN_CONFIG_ERROR_MAX];

    if (dmn_eps_plan(machine, text, m->model->unit_count, unused, sizeof(unused), plan) != 0) {
        machine->whole_wanted_ns = base_now_ns();
        return -EAGAIN;
    }
    return dmn_plan_switch(m, &(struct dmn_switch){.plan = plan,
                                                   .origin = {.from = DMN_FROM_CONFIG},
                                                   .cause = DMN_CAUSE_CONFIG,
                                                   .detail = "reload",
                                                   .keep = true,
                                                   .learn = true});
}

static void apply_kept(struct dmn_reload *r)
{
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    char unused[DMN_CONFIG_ERROR_MAX];

    for (size_t i = 0; i < r->config->model_count && plan; i++) {
        const struct dmn_config_model *c = &r->config->models[i];
        struct dmn_model *m = dmn_model_find(&r->daemon->models, c->name);
        char *copy;

        if (!m) {
            continue;
        }
        m->latest = c->latest;
        dmn_model_wish(m, &c->wishes);
        if (strcmp(m->config_plan, c->plan) == 0) {
            continue;
        }
        if (c->plan[0] && dmn_validate_plan(r->config, c, dmn_machine_whole(&r->daemon->machine),
                                            m->model->unit_count, unused, plan) < 0) {
            dmn_log_with(LOG_NOTICE, (struct dmn_log_fields){.model = m->name},
                         "model %s: its plan takes effect at the next start, with the cores it "
                         "names",
                         m->name);
            continue;
        }
        if (c->plan[0] && (m->planning->retune || set_plan(m, c->plan, plan) != 0)) {
            dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                         "model %s: cannot set its plan now; reload again", m->name);
            continue; /* the next reload tries again */
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
    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        const struct dmn_config_value *a = &old->values[i], *b = &new->values[i];

        if (dmn_config_rows[i].restart &&
            (a->number != b->number || strcmp(a->text ? a->text : "", b->text ? b->text : ""))) {
            dmn_log(LOG_NOTICE, "%s takes effect at the next start", dmn_config_rows[i].key);
        }
    }
    if (!same_eps(old, new)) {
        dmn_log(LOG_NOTICE, "eps takes effect at the next start");
    }
}

/* Those that still cannot be loaded, and why now. */
static void renew_failed(struct dmn_reload *r)
{
    struct dmn_failed_models *failed = &r->daemon->models.failed;

    dmn_failed_clear(failed);
    for (size_t i = 0; i < r->load_count; i++) {
        const struct dmn_load *l = r->loads[i];

        if (l->failed) {
            (void)dmn_failed_add(failed, l->name, l->path, l->error);
            dmn_log_with(LOG_ERR,
                         (struct dmn_log_fields){.id = DMN_MSG_MODEL_FAILED, .model = l->name},
                         "still cannot serve model %s from %s: %s", l->name, l->path, l->error);
        }
    }
}

static void apply(struct dmn_reload *r, struct dmn_model **started)
{
    struct dmn_daemon *d = r->daemon;
    struct dmn_config *old = d->config;
    char doubt[DMN_CONFIG_ERROR_MAX];

    replace_models(r, started);
    apply_kept(r);
    note_restart_keys(old, r->config);
    dmn_validate_doubt(r->config, doubt);
    if (doubt[0]) {
        dmn_log(LOG_WARNING, "%s", doubt);
    }
    d->socket_group = r->group;
    d->config = base_take(r->config);
    dmn_config_free(old);
    dmn_users_set(&d->users, &r->users, dmn_config_string(d->config, DMN_KEY_ADMIN_GROUP));
    renew_failed(r);
    if (!d->args->verbose) {
        dmn_log_level(LOG_ERR + (int)dmn_config_int(d->config, DMN_KEY_LOG_LEVEL));
    }
    dmn_sensors_configure(&d->machine);
    dmn_adapt_configure(d->adapt);
    dmn_boards_configure(&d->boards);
}

/* All models are loaded and planned, or one failed. */
static void arrived(struct dmn_arrival *a, const struct dmn_outcome *o)
{
    struct dmn_reload *r = base_container_of(a, struct dmn_reload, arrival);
    base_autofree struct dmn_model **started =
        calloc(r->load_count + 1, sizeof(struct dmn_model *));
    bool good = !o && started && start_all(r, started);

    if (!good && !r->error[0]) { /* else a judge has written why */
        if (o && o->reason == DMN_REFUSED_LOAD && a->failed) {
            dmn_validate_fault(r->config, dmn_config_find_model(r->config, a->failed->name),
                               a->failed->bad_calibration ? "calibration" : "path", o->text,
                               r->error);
        } else {
            snprintf(r->error, sizeof(r->error), "%s", o && o->text ? o->text : "out of memory");
        }
    }
    if (good) {
        apply(r, started);
    }
    end(r, good);
}

static void leave(struct dmn_arrival *a)
{
    struct dmn_reload *r = base_container_of(a, struct dmn_reload, arrival);

    dmn_refuse(&r->done, DMN_REFUSED_BUSY, "the daemon is stopping");
}

bool dmn_reload_begin(struct dmn_daemon *d, struct dmn_done done)
{
    if (d->reload || d->draining) {
        bool follows = d->reload && follow(d, done);

        if (!follows && !done.fn) { /* nobody waits for an answer */
            dmn_log(LOG_NOTICE, "ignoring a reload: %s",
                    d->draining ? "the daemon is stopping" : "another reload is in progress");
        }
        return follows;
    }
    begin(d, done);
    return true;
}

static void begin(struct dmn_daemon *d, struct dmn_done done)
{
    struct dmn_reload *r = calloc(1, sizeof(*r));
    char text[96];
    int error;

    if (!r) {
        dmn_refuse(&done, DMN_REFUSED_RELOAD, "out of memory");
        return;
    }
    dmn_control_loads_cancel(&d->control, "a reload called it off; load it again");
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)(base_now_ns() / 1000));
    dmn_notify(&d->notify, text);
    r->daemon = d;
    r->done = done;
    d->reload = r;
    error = dmn_config_from_args(d->args, d->state_dir, r->error, &r->config);
    if (!error && r->config->saved_error) {
        snprintf(r->error, sizeof(r->error), "%s", r->config->saved_error);
        error = -EBADMSG;
    }
    if (!error) {
        snprintf(r->error, sizeof(r->error), "out of memory");
        error = collect_loads(r);
    }
    if (!error) {
        r->error[0] = '\0';
    }
    r->restart.config = &r->config;
    r->restart.sysfs_root = d->machine.sysfs_root;
    r->binds = d->frames.acceptor.file.path || d->control.acceptor.file.path;
    r->arrival = (struct dmn_arrival){.models = &d->models,
                                      .config = r->config,
                                      .loads = r->loads,
                                      .count = r->load_count,
                                      .before = judge_machine,
                                      .loaded = judge_plans,
                                      .leave = leave,
                                      .end = arrived};
    if (!error) {
        dmn_arrival_begin(&r->arrival);
    } else {
        end(r, false);
    }
}
