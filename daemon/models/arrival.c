/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models/arrival.h"

#include "daemon/machine/machine.h"

static void finish(struct dmn_arrival *a, const struct dmn_outcome *o)
{
    LIST_REMOVE(a, linked);
    a->end(a, o);
}

static void fail(struct dmn_arrival *a, enum dmn_refusal reason, const char *text)
{
    finish(a, &(struct dmn_outcome){.reason = reason, .text = text});
}

static const char *why(const struct dmn_arrival *a)
{
    return a->cancelled ? a->cancelled : a->failed->error;
}

/* A step of @l ended with @error. */
static void judge(struct dmn_arrival *a, struct dmn_load *l, int error)
{
    if (error && l->may_fail) {
        l->failed = true;
    } else if (error) {
        a->error = error;
        a->failed = l;
    }
}

static void plan_run(struct dmn_job *work)
{
    struct dmn_arrival *a = base_container_of(work, struct dmn_arrival, work);

    for (size_t i = 0; i < a->count && a->error == 0; i++) {
        const _Atomic bool *before = mdl_stop_by(&a->loads[i]->choose.stop);
        struct mdl_progress *elsewhere = mdl_progress_by(&a->loads[i]->progress);

        mdl_progress("planning", 0, 0);
        judge(a, a->loads[i], a->loads[i]->failed ? 0 : a->models->planner->first(a->loads[i]));
        (void)mdl_stop_by(before);
        (void)mdl_progress_by(elsewhere);
    }
}

static void plan_done(struct dmn_job *work)
{
    struct dmn_arrival *a = base_container_of(work, struct dmn_arrival, work);

    if (a->models->stopping) {
        fail(a, DMN_REFUSED_BUSY, "the daemon is stopping");
    } else if (a->error || a->cancelled) {
        fail(a, DMN_REFUSED_LOAD, why(a));
    } else {
        finish(a, NULL);
    }
}

static struct dmn_work *workers(const struct dmn_arrival *a)
{
    const struct dmn_machine *machine = a->models->machine;

    return a->gives_way ? machine->beside : machine->awaited;
}

/* Prepares the planning of every model, then plans on a work thread. */
static void prepare(struct dmn_arrival *a)
{
    const struct dmn_models *models = a->models;
    const struct dmn_config *config = a->config ? a->config : dmn_machine_config(models->machine);

    for (size_t i = 0; i < a->count && a->error == 0; i++) {
        struct dmn_load *l = a->loads[i];

        judge(a, l, l->failed ? 0 : models->planner->prepare(models->planner_ctx, config, l));
    }
    if (a->error) {
        fail(a, DMN_REFUSED_LOAD, why(a));
        return;
    }
    a->work = (struct dmn_job){.run = plan_run, .done = plan_done};
    dmn_work_do(workers(a), &a->work);
}

static void load_run(struct dmn_job *work)
{
    struct dmn_arrival *a = base_container_of(work, struct dmn_arrival, work);

    if (a->before) {
        const _Atomic bool *before = mdl_stop_by(a->count ? &a->loads[0]->choose.stop : NULL);
        struct mdl_progress *elsewhere = mdl_progress_by(a->count ? &a->loads[0]->progress : NULL);

        a->error = a->before(a);
        (void)mdl_stop_by(before);
        (void)mdl_progress_by(elsewhere);
        a->failed = a->error < 0 ? a->loads[0] : NULL;
    }
    for (size_t i = 0; i < a->count && a->error == 0; i++) {
        judge(a, a->loads[i], dmn_load_run(a->loads[i]));
        if (a->error == 0 && !a->loads[i]->failed) {
            a->models->planner->read(a->models->planner_ctx, a->loads[i]);
        }
    }
}

static void load_done(struct dmn_job *work)
{
    struct dmn_arrival *a = base_container_of(work, struct dmn_arrival, work);

    if (a->models->stopping) {
        fail(a, DMN_REFUSED_BUSY, "the daemon is stopping");
    } else if (a->error < 0 || a->cancelled) {
        fail(a, DMN_REFUSED_LOAD, why(a));
    } else if (a->loaded && !a->loaded(a)) {
        finish(a, &(struct dmn_outcome){.reason = DMN_REFUSED_LOAD});
    } else {
        prepare(a);
    }
}

void dmn_arrival_begin(struct dmn_arrival *a)
{
    a->work = (struct dmn_job){.run = load_run, .done = load_done};
    LIST_INSERT_HEAD(&a->models->arrivals, a, linked);
    dmn_work_do(workers(a), &a->work);
}

static void call_off(struct dmn_arrival *a)
{
    for (size_t i = 0; i < a->count; i++) {
        atomic_store_explicit(&a->loads[i]->choose.stop, true, memory_order_relaxed);
    }
    dmn_job_cancel(&a->work);
}

void dmn_arrival_cancel(struct dmn_arrival *a, const char *why)
{
    if (!a->cancelled) {
        a->cancelled = why;
        call_off(a);
    }
}

void dmn_arrivals_leave(struct dmn_models *models)
{
    struct dmn_arrival *a;

    LIST_FOREACH(a, &models->arrivals, linked) {
        if (a->leave) {
            a->leave(a);
        }
        call_off(a);
    }
}
