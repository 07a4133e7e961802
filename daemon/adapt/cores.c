/* SPDX-License-Identifier: Apache-2.0 */
/* A change of cores from its beginning to its end. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt_eps_private.h"
#include "daemon/calibrate.h"
#include "daemon/service/log.h"

static void parts_free(struct dmn_adapt_change *c)
{
    for (size_t i = 0; i < c->count; i++) {
        tun_problem_deinit(&c->parts[i].problem);
        tun_record_deinit(&c->parts[i].record);
        tun_decision_deinit(&c->parts[i].decision);
        free(c->parts[i].solution);
        free(c->parts[i].slow);
    }
    free(base_take(c->parts));
    c->count = 0;
}

static void change_free(struct dmn_adapt_change *c)
{
    parts_free(c);
    free(c->topology);
    free(c);
}

void dmn_adapt_change_leave(struct dmn_adapt *a)
{
    struct dmn_adapt_change *c = base_take(a->change);

    if (c && c->at_work) {
        c->daemon = NULL;
        uv_cancel((uv_req_t *)&c->work);
    } else if (c) {
        change_free(c);
    }
}

static void work(uv_work_t *w)
{
    struct dmn_adapt_change *c = w->data;

    for (size_t i = 0; i < c->count; i++) {
        dmn_change_solve(&c->parts[i]);
    }
}

static bool all_free(const struct dmn_daemon *d)
{
    for (const struct dmn_model *m = d->models; m; m = m->next) {
        if (!dmn_adapt_free_to_act(m)) {
            return false;
        }
    }
    return true;
}

static void apply(struct dmn_adapt_change *c)
{
    struct dmn_daemon *d = c->daemon;

    d->eps = c->eps;
    *d->topology = *c->topology;
    for (size_t i = 0; i < c->count; i++) {
        struct dmn_model *m = dmn_model_find(d, c->parts[i].model);

        if (m && m->loaded_ns == c->parts[i].loaded_ns) {
            dmn_change_apply(c, &c->parts[i], m);
        }
    }
    d->adapt->change = NULL;
    change_free(c);
}

static void done(uv_work_t *w, int status)
{
    struct dmn_adapt_change *c = w->data;
    struct dmn_daemon *d = c->daemon;

    c->at_work = false;
    if (!d || status < 0) {
        if (d) {
            d->adapt->change = NULL;
        }
        change_free(c);
        return;
    }
    if (c->again || !all_free(d)) { /* more has changed: from the start */
        parts_free(c);
        c->again = false;
        dmn_adapt_change_step(d);
    } else {
        apply(c);
    }
    dmn_daemon_settle(d);
}

/* Searches give way; what cannot be stopped is waited for. */
static bool make_way(struct dmn_daemon *d)
{
    if (dmn_calibrating(d)) {
        dmn_calibrate_abort(d, "the cores have changed");
    }
    for (struct dmn_model *m = d->models; m; m = m->next) {
        if (m->retune) {
            dmn_retune_cancel(m);
        }
        if (m->adapt && m->adapt->job) { /* what was known before it is known still */
            int error = tun_adapt_decided(m->adapt->watch, &m->adapt->job->record, NULL, false,
                                          base_now_ns());

            m->adapt->job = dmn_adapt_job_leave(m->adapt->job);
            if (error) {
                dmn_adapt_forget(m);
            }
        }
    }
    return all_free(d) && !d->reload && !d->loads && !d->optimises;
}

static void drop_change(struct dmn_daemon *d, const char *why)
{
    struct dmn_adapt_change *c = base_take(d->adapt->change);

    for (struct dmn_model *m = d->models; m; m = m->next) {
        dmn_change_tell_nothing(m, c, why, "kept");
    }
    change_free(c);
}

void dmn_adapt_change_step(struct dmn_daemon *d)
{
    struct dmn_adapt_change *c = d->adapt->change;
    size_t i = 0;
    int error;

    if (!c || c->at_work || d->draining || !make_way(d)) {
        return;
    }
    if (dmn_places_find(c) < 0) {
        drop_change(d, "no execution place has a core left, so plans stay as they are");
        return;
    }
    if (dmn_places_served(d, &c->eps)) {
        *d->topology = *c->topology;
        drop_change(d, "no execution place has another set of cores");
        return;
    }
    c->parts = calloc(dmn_model_count(d), sizeof(*c->parts));
    error = c->parts ? 0 : -ENOMEM;
    for (struct dmn_model *m = d->models; m && !error; m = m->next) {
        c->count = i + 1;
        error = dmn_change_prepare(m, c, &c->parts[i++]);
    }
    error = error ? error : uv_queue_work(&d->loop, &c->work, work, done);
    c->at_work = error == 0;
    if (error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s: %s; plans stay as they are",
                        c->text, strerror(-error));
        drop_change(d, strerror(-error));
    }
}

void dmn_adapt_cores_changed(struct dmn_daemon *d, const struct dmn_hotplug_change *change)
{
    struct dmn_adapt_change *c = d->adapt->change;

    if (!dmn_config_int(d->config, DMN_KEY_ADAPT_ENABLED)) {
        return;
    }
    if (!c) {
        c = calloc(1, sizeof(*c));
        if (!c) {
            return;
        }
        c->work.data = c;
        c->daemon = d;
        c->began_ns = base_now_ns();
        d->adapt->change = c;
    }
    c->again = c->at_work;
    c->cause = change->cause;
    c->usable = change->usable;
    snprintf(c->text, sizeof(c->text), "%s", change->text);
    dmn_adapt_change_step(d);
}
