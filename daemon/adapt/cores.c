/* SPDX-License-Identifier: Apache-2.0 */
/* A change of cores from start to end. */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt/cores.h"
#include "daemon/adapt/live_turns.h"
#include "daemon/service/log.h"
#include "tuner/adapt/decided.h"

#define LASTING_NS (60 * BASE_NS_PER_S) /* a split that lasts for less is a hasty one */

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
        c->adapt = NULL;
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

static bool all_free(const struct dmn_adapt *adapt)
{
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (!dmn_adapt_free_to_act(m)) {
            return false;
        }
    }
    return true;
}

/* Splits that do not last come less and less often. */
static void note_split(struct dmn_adapt *adapt, const struct dmn_adapt_change *c)
{
    uint64_t now = base_now_ns();

    if (c->parting) {
        if (c->split.count == 0) {
            adapt->hasty = now - adapt->split_ns < LASTING_NS ? adapt->hasty + 1 : 0;
        }
        adapt->split_ns = now;
    }
    adapt->split = c->split;
    adapt->whole_ns = 0;
}

/* Reports a change that leads to nothing. A split of ours that no plan gains by is told within the
 * rations, and not tried again soon. */
static void drop_change(struct dmn_adapt *adapt, const char *why)
{
    struct dmn_adapt_change *c = base_take(adapt->change);
    uint64_t now = base_now_ns();

    adapt->refused_ns = c->parting ? now : adapt->refused_ns;
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (!c->parting || (m->adapt && dmn_adapt_may_tell(m->adapt, now))) {
            dmn_change_tell_nothing(m, c, why, DMN_OUTCOME_KEPT);
        }
    }
    change_free(c);
}

static void apply(struct dmn_adapt_change *c)
{
    struct dmn_adapt *adapt = c->adapt;

    if (c->parting && !dmn_change_pays(c)) {
        drop_change(adapt, "no plan gains enough by that");
        return;
    }
    note_split(adapt, c);
    adapt->machine->eps = c->eps;
    adapt->machine->whole = c->whole;
    *adapt->machine->topology = *c->topology;
    adapt->state.id = 0; /* the new EPs have another state */
    for (size_t i = 0; i < c->count; i++) {
        struct dmn_model *m = dmn_model_find(adapt->models, c->parts[i].model);

        if (m && m->loaded_ns == c->parts[i].loaded_ns) {
            dmn_change_apply(c, &c->parts[i], m);
        }
    }
    adapt->change = NULL;
    change_free(c);
}

static void done(uv_work_t *w, int status)
{
    struct dmn_adapt_change *c = w->data;
    struct dmn_adapt *adapt = c->adapt;

    c->at_work = false;
    if (!adapt || status < 0) {
        if (adapt) {
            adapt->change = NULL;
        }
        change_free(c);
        return;
    }
    if (c->again || !all_free(adapt)) { /* more has changed: start over */
        parts_free(c);
        c->again = false;
        dmn_adapt_change_step(adapt);
    } else {
        apply(c);
    }
}

/* Cancels searches; waits for what cannot be cancelled. */
static bool make_way(struct dmn_adapt *adapt)
{
    if (dmn_profiling(adapt->plans)) {
        dmn_profile_abort(adapt->plans, "the cores have changed");
    }
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (m->planning->retune) {
            dmn_retune_cancel(m);
        }
        if (m->adapt) {
            dmn_turns_call_off(m->adapt->turns);
        }
        if (m->adapt && m->adapt->job) { /* it still knows what was known before the change */
            int error = tun_adapt_decided(m->adapt->watch, &m->adapt->job->record, NULL, false,
                                          base_now_ns());

            m->adapt->job = dmn_adapt_job_leave(m->adapt->job);
            if (error) {
                dmn_adapt_forget(m);
            }
        }
    }
    return all_free(adapt) && LIST_EMPTY(&adapt->models->arrivals);
}

void dmn_adapt_change_step(struct dmn_adapt *adapt)
{
    struct dmn_adapt_change *c = adapt->change;
    size_t i = 0;
    int error;

    if (!c || c->at_work || adapt->models->stopping || !make_way(adapt)) {
        return;
    }
    if (dmn_eps_find(c) < 0) {
        drop_change(adapt, "no execution place has a core left, so plans stay as they are");
        return;
    }
    if (dmn_eps_served(adapt, &c->eps)) {
        *adapt->machine->topology = *c->topology;
        drop_change(adapt, "no execution place has another set of cores");
        return;
    }
    c->parts = calloc(dmn_model_count(adapt->models), sizeof(*c->parts));
    error = c->parts ? 0 : -ENOMEM;
    for (struct dmn_model *m = adapt->models->models; m && !error; m = m->next) {
        c->count = i + 1;
        error = dmn_change_prepare(m, c, &c->parts[i++]);
    }
    error = error ? error : uv_queue_work(adapt->machine->loop, &c->work, work, done);
    c->at_work = error == 0;
    if (error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s: %s; plans stay as they are",
                        c->text, strerror(-error));
        drop_change(adapt, strerror(-error));
    }
}

/* A change that has not begun. Return: NULL: no memory. */
static struct dmn_adapt_change *change_new(struct dmn_adapt *adapt)
{
    struct dmn_adapt_change *c = calloc(1, sizeof(*c));

    if (c) {
        c->work.data = c;
        c->adapt = adapt;
        c->began_ns = base_now_ns();
        adapt->change = c;
    }
    return c;
}

void dmn_adapt_parts_begin(struct dmn_adapt *adapt, const struct dmn_split *split, const char *text)
{
    struct dmn_adapt_change *c = change_new(adapt);

    if (!c) {
        return;
    }
    c->parting = true;
    c->cause = TUN_CAUSE_CONTENTION;
    c->split = *split;
    for (size_t e = 0; e < adapt->machine->eps.count; e++) {
        const struct pl_ep *ep = &adapt->machine->eps.eps[e];

        for (size_t i = 0; i < ep->cpu_count; i++) {
            gov_cpuset_add(&c->usable, ep->cpus[i]);
        }
    }
    snprintf(c->text, sizeof(c->text), "%s", text);
    dmn_adapt_change_step(adapt);
}

bool dmn_adapt_parting(const struct dmn_adapt *adapt)
{
    return adapt->change && adapt->change->parting;
}

void dmn_adapt_cores_changed(void *ctx, const struct dmn_hotplug_change *change)
{
    struct dmn_adapt *adapt = ctx;
    struct dmn_adapt_change *c = adapt->change;

    if (!dmn_config_int(dmn_machine_config(adapt->machine), DMN_KEY_ADAPT_ENABLED)) {
        return;
    }
    c = c ? c : change_new(adapt);
    if (!c) {
        return;
    }
    c->again = c->at_work;
    c->parting = false; /* what is split stays so */
    c->split = adapt->split;
    c->cause = strcmp(change->cause, "cpuset") == 0 ? TUN_CAUSE_CPUSET : TUN_CAUSE_HOTPLUG;
    c->usable = change->usable;
    snprintf(c->text, sizeof(c->text), "%s", change->text);
    dmn_adapt_change_step(adapt);
}
