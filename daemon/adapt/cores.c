/* SPDX-License-Identifier: Apache-2.0 */
/* A change of cores from start to end. */

#include "daemon/adapt/cores.h"
#include "daemon/service/log.h"

#define LASTING_NS (60 * BASE_NS_PER_S) /* a split that lasts for less is a hasty one */

static void parts_free(struct dmn_adapt_change *c)
{
    for (size_t i = 0; i < c->count; i++) {
        tun_problem_deinit(&c->parts[i].problem);
        tun_record_deinit(&c->parts[i].record);
        tun_decision_deinit(&c->parts[i].decision);
        free(c->parts[i].solution);
        free(c->parts[i].slow);
        free(c->parts[i].turns);
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

static void drop(struct dmn_job *work)
{
    change_free(base_container_of(work, struct dmn_adapt_change, work));
}

void dmn_adapt_change_leave(struct dmn_adapt *a)
{
    struct dmn_adapt_change *c = base_take(a->change);

    if (c && c->phase == DMN_CHANGE_IN_TURNS) {
        c->adapt = NULL;
    } else if (c) {
        dmn_job_leave(&c->work);
    }
}

static void run(struct dmn_job *work)
{
    struct dmn_adapt_change *c = base_container_of(work, struct dmn_adapt_change, work);

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

/* Return: NULL: the model was loaded since the change began. */
static struct dmn_change_part *part_of(const struct dmn_adapt_change *c, const struct dmn_model *m)
{
    for (size_t i = 0; i < c->count; i++) {
        if (m->loaded_ns == c->parts[i].loaded_ns && strcmp(m->name, c->parts[i].model) == 0) {
            return &c->parts[i];
        }
    }
    return NULL;
}

/* Return: no user set a plan, or gave planning back, since the change was prepared. */
static bool as_prepared(const struct dmn_adapt_change *c)
{
    for (const struct dmn_model *m = c->adapt->models->models; m; m = m->next) {
        const struct dmn_change_part *p = part_of(c, m);

        if (p && p->pinned != dmn_origin_pinned(m->origin)) {
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
        adapt->stays = 0;
    }
    adapt->split = c->split;
}

/* Reports a change that leads to nothing. A change of ours is told within the rations, and a split
 * that no plan gains by is not tried again soon. @turns: of @took; NULL: there were none. */
static void drop_change(struct dmn_adapt *adapt, const char *why, const struct dmn_model *took,
                        const struct dmn_turns_result *turns)
{
    struct dmn_adapt_change *c = base_take(adapt->change);
    uint64_t now = base_now_ns();

    adapt->refused_ns = c->parting && c->split.count > 0 ? now : adapt->refused_ns;
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (!c->parting || (m->adapt && dmn_adapt_may_tell(m->adapt, now))) {
            dmn_change_tell_nothing(m, c, why, m == took ? turns : NULL, DMN_OUTCOME_KEPT);
        }
    }
    change_free(c);
}

static void apply(struct dmn_adapt_change *c)
{
    struct dmn_adapt *adapt = c->adapt;

    note_split(adapt, c);
    adapt->together.moved = c->cause;
    dmn_eps_replace(adapt->machine, &c->eps, &c->whole, c->topology);
    adapt->state.id = 0; /* the new EPs have another state */
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        struct dmn_change_part *p = part_of(c, m);

        if (p) {
            dmn_change_apply(c, p, m);
        }
    }
    adapt->change = NULL;
    change_free(c);
}

/* A join was proved, or not. */
static void turns_over(struct dmn_model *m, void *ctx, const struct dmn_turns_result *r)
{
    struct dmn_adapt_change *c = ctx;
    struct dmn_adapt *adapt = c->adapt;
    struct dmn_change_part *p = m && adapt ? part_of(c, m) : NULL;

    c->phase = DMN_CHANGE_WAITS;
    if (!adapt) {
        change_free(c);
    } else if (!c->parting) {
        return; /* other cores have changed: the next step starts over */
    } else if (!p || r->left || !(p->turns = malloc(sizeof(*r)))) {
        adapt->change = NULL;
        change_free(c);
    } else if (r->verdict == TUN_TURNS_BETTER) {
        *p->turns = *r;
        c->phase = DMN_CHANGE_PROVED;
    } else {
        adapt->stays++;
        adapt->stays_ns = base_now_ns();
        snprintf(c->text, sizeof(c->text), "all cores seem equally fast again");
        drop_change(adapt, "the plan kept for that is slower, so the EP stays split", m, r);
    }
}

/* Return: the change waits for turns. */
static bool prove(struct dmn_adapt_change *c)
{
    bool due = c->parting && c->split.count == 0 && !c->must;

    for (struct dmn_model *m = c->adapt->models->models; due && m; m = m->next) {
        struct dmn_change_part *p = part_of(c, m);

        if (p && dmn_change_prove(c, p, m, turns_over)) {
            c->phase = DMN_CHANGE_IN_TURNS;
            return true;
        }
    }
    return false;
}

static void done(struct dmn_job *work)
{
    struct dmn_adapt_change *c = base_container_of(work, struct dmn_adapt_change, work);
    struct dmn_adapt *adapt = c->adapt;

    c->phase = DMN_CHANGE_WAITS;
    if (c->again || !all_free(adapt) || !as_prepared(c)) { /* more has changed: start over */
        c->again = false;
        dmn_adapt_change_step(adapt);
    } else if (c->parting && !dmn_change_pays(c)) {
        drop_change(adapt, "no plan gains enough by that", NULL, NULL);
    } else if (!prove(c)) {
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
            dmn_adapt_decided(m, &m->adapt->job->record, NULL, false);
            dmn_adapt_leave_job(m->adapt);
        }
    }
    return all_free(adapt) && LIST_EMPTY(&adapt->models->arrivals);
}

/* Splits off what is to be split off, as far as its cores are there. */
static void split_eps(struct dmn_adapt_change *c)
{
    uint16_t cpus[DMN_SPLIT_MAX];

    c->whole = c->eps;
    for (size_t i = 0; i < c->split.count; i++) {
        cpus[i] = c->split.cores[i].cpu;
    }
    if (pl_eps_split(&c->whole, cpus, c->split.count, &c->eps) < 0) {
        c->eps = c->whole;
    }
    if (c->eps.count == c->whole.count) { /* nothing is left of it */
        c->whole.count = 0;
        c->split.count = 0;
    }
}

/* Finds topology and EPs of @c from the usable cores. Return: 0; -errno, with the reason logged. */
static int find_eps(struct dmn_adapt_change *c)
{
    char why[DMN_CONFIG_ERROR_MAX] = "out of memory";
    int error = -ENOMEM;

    if (c->topology || (c->topology = malloc(sizeof(*c->topology)))) {
        error = dmn_eps_find(c->adapt->machine, &c->usable, c->topology, why, &c->eps);
    }
    if (!error) {
        split_eps(c);
    } else {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s: %s; plans stay as they are",
                        c->text, why);
    }
    return error;
}

static bool same_eps(const struct pl_ep_set *a, const struct pl_ep_set *b)
{
    bool same = a->count == b->count;

    for (size_t e = 0; same && e < a->count; e++) {
        same = a->eps[e].cpu_count == b->eps[e].cpu_count &&
               strcmp(a->eps[e].name, b->eps[e].name) == 0 &&
               memcmp(a->eps[e].cpus, b->eps[e].cpus,
                      a->eps[e].cpu_count * sizeof(a->eps[e].cpus[0])) == 0;
    }
    return same;
}

/* Return: the daemon and every model already use @eps. */
static bool served(const struct dmn_adapt *adapt, const struct pl_ep_set *eps)
{
    bool same = same_eps(&adapt->machine->eps, eps);

    for (const struct dmn_model *m = adapt->models->models; m && same; m = m->next) {
        same = same_eps(pl_current_eps(m->pipe), eps);
    }
    return same;
}

void dmn_adapt_change_step(struct dmn_adapt *adapt)
{
    struct dmn_adapt_change *c = adapt->change;
    size_t i = 0;
    int error;

    if (!c || c->phase == DMN_CHANGE_AT_WORK || c->phase == DMN_CHANGE_IN_TURNS ||
        adapt->models->stopping || !make_way(adapt)) {
        return;
    }
    if (c->phase == DMN_CHANGE_PROVED && c->parting && as_prepared(c)) {
        apply(c);
        return;
    }
    parts_free(c);
    c->phase = DMN_CHANGE_WAITS;
    if (find_eps(c) < 0) {
        drop_change(adapt, "no execution place has a core left, so plans stay as they are", NULL,
                    NULL);
        return;
    }
    if (served(adapt, &c->eps)) {
        dmn_eps_replace(adapt->machine, &adapt->machine->eps, &adapt->machine->whole, c->topology);
        drop_change(adapt, "no execution place has another set of cores", NULL, NULL);
        return;
    }
    c->parts = calloc(dmn_model_count(adapt->models), sizeof(*c->parts));
    error = c->parts ? 0 : -ENOMEM;
    for (struct dmn_model *m = adapt->models->models; m && !error; m = m->next) {
        c->count = i + 1;
        error = dmn_change_prepare(m, c, &c->parts[i++]);
    }
    if (!error) {
        c->phase = DMN_CHANGE_AT_WORK;
        dmn_work_do(adapt->machine->beside, &c->work);
    } else {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s: %s; plans stay as they are",
                        c->text, strerror(-error));
        drop_change(adapt, strerror(-error), NULL, NULL);
    }
}

/* A change that has not begun. Return: NULL: no memory. */
static struct dmn_adapt_change *change_new(struct dmn_adapt *adapt)
{
    struct dmn_adapt_change *c = calloc(1, sizeof(*c));

    if (c) {
        c->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
        c->adapt = adapt;
        c->began_ns = base_now_ns();
        adapt->change = c;
    }
    return c;
}

void dmn_adapt_parts_begin(struct dmn_adapt *adapt, const struct dmn_split *split, const char *text,
                           bool must)
{
    struct dmn_adapt_change *c = change_new(adapt);

    if (!c) {
        return;
    }
    c->parting = true;
    c->must = must;
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
    c->again = c->phase == DMN_CHANGE_AT_WORK;
    c->parting = false; /* what is split stays so */
    for (struct dmn_model *m = adapt->models->models; m && c->phase == DMN_CHANGE_IN_TURNS;
         m = m->next) {
        dmn_turns_call_off(m->adapt ? m->adapt->turns : NULL);
    }
    c->split = adapt->split;
    c->cause = strcmp(change->cause, "cpuset") == 0 ? TUN_CAUSE_CPUSET : TUN_CAUSE_HOTPLUG;
    c->usable = change->usable;
    snprintf(c->text, sizeof(c->text), "%s", change->text);
    dmn_adapt_change_step(adapt);
}
