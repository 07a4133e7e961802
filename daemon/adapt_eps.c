/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other cores: new execution places, a table for them, a plan on them.
 *
 * A change waits until no search and no switch is under way (searches are cancelled), then the
 * places are found anew, what was learned is carried over by core, and every model's plan is
 * decided on as queued work. On the loop all models move at once, so that places, tables and plans
 * always belong together; a change that comes meanwhile begins again.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt_private.h"
#include "daemon/calibrate.h"
#include "daemon/log.h"

/* What a model does on the new places. */
struct part {
    char model[64];
    uint64_t loaded_ns;         /* with the name: which model it is */
    struct tun_problem problem; /* owned; on the new places */
    struct pl_plan same;        /* the serving plan on the new places, if it fits */
    struct pl_plan known;       /* kept for this state, if known_as */
    const char *known_as;       /* static; NULL: none */
    bool fits, pinned, old_kinds;
    double *slow; /* owned: [kinds][units] of problem, what is known of kinds whose cores stay */
    bool contended[PL_EP_MAX], slowed, doubted;
    double before_ns, after_ns; /* of the plan before, if it fits, and of the chosen one */
    struct tun_record record;   /* owned; without units: solved without one */
    struct tun_decision decision;
    struct tun_solution *solution; /* owned */
    int result;
};

struct dmn_adapt_change {
    uv_work_t work;
    struct dmn_daemon *daemon; /* NULL: nobody waits for it any more */
    bool at_work, again;
    const char *cause; /* static */
    char text[192];
    struct gov_cpuset usable;
    struct gov_topology *topology; /* owned */
    struct pl_ep_set eps;
    uint64_t began_ns;
    struct part *parts; /* owned */
    size_t count;
};

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

/* Only cores that can be used; places without one go. */
static void restrict_eps(struct pl_ep_set *eps, const struct gov_cpuset *usable)
{
    size_t kept = 0;

    for (size_t e = 0; e < eps->count; e++) {
        struct pl_ep *from = &eps->eps[e];
        size_t cpus = 0;

        for (size_t c = 0; c < from->cpu_count; c++) {
            if (gov_cpuset_has(usable, from->cpus[c])) {
                from->cpus[cpus++] = from->cpus[c];
            }
        }
        from->cpu_count = cpus;
        if (cpus > 0) {
            eps->eps[kept++] = *from;
        }
    }
    eps->count = kept;
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

static size_t common_cpus(const struct pl_ep *a, const struct pl_ep *b)
{
    size_t count = 0;

    for (size_t i = 0; i < a->cpu_count; i++) {
        for (size_t k = 0; k < b->cpu_count; k++) {
            count += a->cpus[i] == b->cpus[k];
        }
    }
    return count;
}

/* The place of @eps that has most cores of @ep; SIZE_MAX: none has any. */
static size_t place_of(const struct pl_ep_set *eps, const struct pl_ep *ep)
{
    size_t most = 0, place = SIZE_MAX;

    for (size_t e = 0; e < eps->count; e++) {
        size_t common = common_cpus(&eps->eps[e], ep);

        if (common > most) {
            most = common;
            place = e;
        }
    }
    return place;
}

/* What was learned of the same cores on other places. */
static void carry(const struct tun_problem *from, const struct pl_ep_set *from_eps,
                  struct tun_problem *to, const struct pl_ep_set *to_eps)
{
    if (from->unit_count != to->unit_count || from->kind_count != from_eps->count) {
        return;
    }
    to->handoff_ns = from->handoff_ns;
    to->handoff_ns_per_byte = from->handoff_ns_per_byte;
    for (size_t k = 0; k < to->kind_count; k++) {
        size_t old = place_of(from_eps, &to_eps->eps[k]);
        size_t widths = old == SIZE_MAX ? 0 : base_min(from->kinds[old].cores, to->kinds[k].cores);

        for (size_t w = 1; w <= widths; w++) {
            for (size_t u = 0; u < to->unit_count; u++) {
                const struct tun_cell *cell = tun_cell_at(&from->costs, old, w, u);

                if (cell->source >= TUN_SAVED) {
                    *tun_cell_at(&to->costs, k, w, u) = *cell;
                }
            }
        }
    }
    dmn_planner_guess(to);
}

/* A plan on other places. Return: does it fit there. */
static bool translate(const struct pl_plan *plan, const struct pl_ep_set *from,
                      const struct pl_ep_set *to, size_t unit_count, struct pl_plan *ret)
{
    char error[256];

    *ret = *plan;
    for (size_t s = 0; s < ret->stage_count; s++) {
        for (size_t g = 0; g < ret->stages[s].group_count; g++) {
            struct pl_group *group = &ret->stages[s].groups[g];
            size_t place = place_of(to, &from->eps[group->ep]);

            if (place == SIZE_MAX) {
                return false;
            }
            group->ep = (uint16_t)place;
        }
    }
    if (pl_plan_check(ret, to, unit_count, error, sizeof(error)) < 0) {
        return false;
    }
    for (size_t e = 0; e < to->count; e++) {
        size_t old = place_of(from, &to->eps[e]);
        bool shared = old != SIZE_MAX && pl_plan_cores(plan, old) > from->eps[old].cpu_count;

        if (!shared && pl_plan_cores(ret, e) > to->eps[e].cpu_count) {
            return false;
        }
    }
    return true;
}

/* Do the new places have only cores of the old ones, each of one of them. */
static bool only_less(const struct pl_ep_set *old, const struct pl_ep_set *new)
{
    bool taken[PL_EP_MAX] = {false};

    for (size_t e = 0; e < new->count; e++) {
        size_t place = place_of(old, &new->eps[e]);

        if (place == SIZE_MAX || taken[place] ||
            common_cpus(&new->eps[e], &old->eps[place]) != new->eps[e].cpu_count) {
            return false;
        }
        taken[place] = true;
    }
    return true;
}

/* Of a kind of the table that serves; until the watch begins, as other cores before left it. */
static double known_slow(const struct dmn_model *m, size_t kind, size_t unit, bool *ret_contended)
{
    const struct dmn_adapt_model *a = m->adapt;
    size_t units = m->problem.unit_count;

    *ret_contended = false;
    if (a && !a->serving && a->carried && a->carried_count == m->problem.kind_count * units) {
        *ret_contended = a->carried_contended[kind];
        return a->carried[kind * units + unit];
    }
    return a && a->serving ? tun_adapt_slow(a->watch, kind, unit, ret_contended) : 1;
}

/* What something foreign does to cores that stay, it goes on doing. Return: 0 or -ENOMEM. */
static int carry_slow(const struct dmn_model *m, const struct dmn_adapt_change *c, struct part *p)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    size_t units = p->problem.unit_count;

    p->slow = malloc(p->problem.kind_count * units * sizeof(*p->slow));
    if (!p->slow) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < p->problem.kind_count; k++) {
        size_t place = place_of(old, &c->eps.eps[k]);

        for (size_t u = 0; u < units; u++) {
            double slow = place == SIZE_MAX ? 1 : known_slow(m, place, u, &p->contended[k]);

            p->slow[k * units + u] = slow;
            p->slowed |= slow != 1;
        }
    }
    return 0;
}

/* The inputs of the decision: on the places before where cores only went, else on the new ones.
 * Return: 0 or -ENOMEM. */
static int make_record(struct dmn_model *m, const struct dmn_adapt_change *c, struct part *p)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    struct tun_record *r = &p->record;
    size_t cells;
    int error;

    p->old_kinds = only_less(old, &c->eps) && m->problem.kind_count == old->count;
    if (!p->old_kinds && !p->fits) {
        return 0;
    }
    error = p->old_kinds ? dmn_planner_problem(m, NULL, &r->problem)
                         : tun_problem_copy(&p->problem, &r->problem);
    if (error) {
        return error;
    }
    cells = r->problem.kind_count * r->problem.unit_count;
    r->slow = malloc(cells * sizeof(*r->slow));
    r->beta = malloc(r->problem.unit_count * sizeof(*r->beta));
    if (!r->slow || !r->beta) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < r->problem.kind_count; k++) {
        for (size_t u = 0; u < r->problem.unit_count; u++) {
            bool contended;

            r->slow[k * r->problem.unit_count + u] = p->old_kinds
                                                         ? known_slow(m, k, u, &contended)
                                                         : p->slow[k * r->problem.unit_count + u];
        }
    }
    for (size_t u = 0; u < r->problem.unit_count; u++) {
        r->beta[u] = tun_beta_default(&r->problem.units[u]);
    }
    for (size_t k = 0; k < r->problem.kind_count; k++) {
        size_t place = p->old_kinds ? place_of(&c->eps, &old->eps[k]) : k;

        r->kinds[k].cores = place == SIZE_MAX ? 0 : (uint16_t)c->eps.eps[place].cpu_count;
    }
    r->plan = p->old_kinds ? *pl_current_plan(m->pipe) : p->same;
    r->events = strcmp(c->cause, "cpuset") == 0 ? TUN_EVENT_CPUSET : TUN_EVENT_HOTPLUG;
    r->gain_min = (double)dmn_config_int(m->daemon->config, DMN_KEY_ADAPT_GAIN) / 1e2;
    r->budget_left = 1;
    return 0;
}

/* The table on the new places, and the plan that was kept for them. */
static int prepare_table(struct dmn_model *m, const struct dmn_adapt_change *c, struct part *p)
{
    struct dmn_daemon *d = m->daemon;
    struct gov_topology *topology = d->topology;
    struct pl_ep_set now = d->eps;
    struct dmn_load *l = dmn_load_new(m->name, m->path, "", m->kernels, m->latest, d);
    int error;

    if (!l) {
        return -ENOMEM;
    }
    l->model = m->model; /* lent */
    d->eps = c->eps;     /* what is prepared is for these */
    d->topology = c->topology;
    error = dmn_planner_prepare(d, d->config, l);
    d->topology = topology;
    d->eps = now;
    l->model = NULL;
    if (!error) {
        p->problem = l->problem;
        l->problem = TUN_PROBLEM_NULL;
        if (l->first) {
            p->known = *l->first;
            p->known_as = l->algorithm;
        }
        if (m->adapt && m->adapt->home.unit_count) {
            carry(&m->adapt->home, &m->adapt->home_eps, &p->problem, &c->eps);
        }
        carry(&m->problem, pl_current_eps(m->pipe), &p->problem, &c->eps);
    }
    dmn_load_free(l);
    return error;
}

static int prepare_part(struct dmn_model *m, const struct dmn_adapt_change *c, struct part *p)
{
    int error;

    memcpy(p->model, m->name, sizeof(p->model));
    p->loaded_ns = m->loaded_ns;
    p->pinned = dmn_adapt_pinned(m);
    if (!dmn_adapt_holds(m)) {
        dmn_planner_learn(m);
    }
    p->solution = calloc(1, sizeof(*p->solution));
    error = p->solution ? prepare_table(m, c, p) : -ENOMEM;
    if (error) {
        return error;
    }
    error = carry_slow(m, c, p);
    if (error) {
        return error;
    }
    p->fits = translate(pl_current_plan(m->pipe), pl_current_eps(m->pipe), &c->eps,
                        m->problem.unit_count, &p->same);
    return make_record(m, c, p);
}

/* The table with what is known of its kinds. Return: 0 or -ENOMEM. */
static int slowed_copy(const struct tun_problem *problem, const double *slow,
                       struct tun_problem *ret)
{
    int error = tun_problem_copy(problem, ret);

    for (size_t k = 0; k < problem->kind_count && !error; k++) {
        for (size_t w = 1; w <= problem->kinds[k].cores; w++) {
            for (size_t u = 0; u < problem->unit_count; u++) {
                tun_cell_at(&ret->costs, k, w, u)->ns *= slow[k * problem->unit_count + u];
            }
        }
    }
    return error;
}

static int solve(struct part *p)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    int error = slowed_copy(&p->problem, p->slow, &slowed);

    return error ? error : tun_solve(&slowed, p->solution);
}

/* The plan kept for these cores is one for when nothing foreign is on them. */
static bool returns(const struct part *p)
{
    return p->known_as && (!p->slowed || p->pinned);
}

static void work(uv_work_t *w)
{
    struct dmn_adapt_change *c = w->data;

    for (size_t i = 0; i < c->count; i++) {
        struct part *p = &c->parts[i];

        if (!returns(p) && !(p->pinned && p->fits)) {
            p->result =
                p->record.problem.unit_count ? tun_decide(&p->record, &p->decision) : solve(p);
        }
    }
}

/* Which plan it is to be. Return: where it is from, NULL: none was found. */
static const char *choose(const struct dmn_model *m, const struct dmn_adapt_change *c,
                          const struct part *p, struct pl_plan *ret)
{
    if (p->pinned && p->fits) {
        *ret = p->same;
        return m->algorithm;
    }
    if (returns(p)) {
        *ret = p->known;
        return p->known_as;
    }
    if (p->record.problem.unit_count && p->result == 0 && p->decision.replan) {
        *ret = p->decision.plan;
        return !p->old_kinds || translate(&p->decision.plan, pl_current_eps(m->pipe), &c->eps,
                                          m->problem.unit_count, ret)
                   ? "exact"
                   : NULL;
    }
    if (!p->record.problem.unit_count && p->result >= 0) {
        *ret = p->solution->plan;
        return "exact";
    }
    *ret = p->same;
    return p->fits ? m->algorithm : NULL;
}

static void keep_home(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem copy;

    if (a && (a->home.unit_count == 0 || tun_core_count(&m->problem) >= tun_core_count(&a->home)) &&
        tun_problem_copy(&m->problem, &copy) == 0) {
        tun_problem_deinit(&a->home);
        a->home = copy;
        a->home_eps = *pl_current_eps(m->pipe);
    }
}

static void tell(struct dmn_model *m, const struct dmn_adapt_change *c, const struct part *p,
                 const char *before, const char *algorithm)
{
    bool kept = strcmp(algorithm, "exact") != 0 && !returns(p);
    bool recorded = p->decision.corrected.unit_count > 0;
    char after[PL_PLAN_TEXT_MAX], detail[320];
    json_t *event;

    dmn_model_plan_text(m, after);
    snprintf(detail, sizeof(detail), "%s%s", c->text,
             p->pinned && p->fits ? "; the plan is the user's and still fits"
             : p->pinned          ? "; the user's plan has not its cores any more, so it is planned"
             : returns(p)         ? "; the plan kept for these cores returns"
                                  : "");
    event = dmn_adapt_tell(
        m, &(struct dmn_adapt_told){
               .cause = c->cause,
               .detail = detail,
               .algorithm = algorithm,
               .outcome = kept ? "kept" : "switched",
               .before = before,
               .after = after,
               .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
               .gain = recorded ? p->decision.gain : 0,
               .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6,
               .record = recorded ? dmn_adapt_record_json(&p->record, &p->decision) : NULL});
    if (m->adapt && !kept) {
        dmn_adapt_await(m, event);
    } else {
        json_decref(event);
    }
}

/* Bottleneck of a plan on the new places with what is known of them; 0: not known. */
static double predict(const struct tun_problem *problem, const struct part *p,
                      const struct pl_plan *plan)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    struct tun_outcome o;

    return slowed_copy(problem, p->slow, &slowed) == 0 && tun_fits(&slowed, plan) &&
                   tun_eval(&slowed, plan, &o) == 0
               ? o.bottleneck_ns
               : 0;
}

/* Cores changed and the plan did not: an event too. */
static void tell_nothing(struct dmn_model *m, const struct dmn_adapt_change *c, const char *why,
                         const char *outcome)
{
    char plan[PL_PLAN_TEXT_MAX], detail[sizeof(c->text) + 128];

    dmn_model_plan_text(m, plan);
    snprintf(detail, sizeof(detail), "%s; %.100s", c->text, why);
    json_decref(dmn_adapt_tell(
        m, &(struct dmn_adapt_told){.cause = c->cause,
                                    .detail = detail,
                                    .algorithm = m->algorithm,
                                    .outcome = outcome,
                                    .before = plan,
                                    .after = plan,
                                    .fps_before = m->adapt ? dmn_adapt_fps(m->adapt, 3) : -1,
                                    .duration_ms = (double)(base_now_ns() - c->began_ns) / 1e6}));
}

/* The watch goes on with what is known, and takes the plan back where the one before would do
 * better. */
static void hand_over(struct dmn_model *m, struct part *p)
{
    struct dmn_adapt_model *a = m->adapt;

    dmn_adapt_forget(m);
    memset(a->known, 0, sizeof(a->known)); /* plans on other places */
    a->state_id = 0;
    a->epoch = pl_epoch(m->pipe);
    a->epoch_ns = base_now_ns();
    a->window_ns = 0;
    if (p->slowed) {
        a->carried = base_take(p->slow);
        a->carried_count = m->problem.kind_count * m->problem.unit_count;
        memcpy(a->carried_contended, p->contended, sizeof(a->carried_contended));
    }
    if (p->doubted) {
        a->doubted = true;
        a->before = p->same;
        a->before_ns = p->before_ns;
        a->after_ns = p->after_ns;
    }
}

static void doubt(const struct dmn_model *m, struct part *p, const struct pl_plan *plan)
{
    if (p->fits && !p->pinned && !pl_plan_equal(&p->same, plan)) {
        p->before_ns = predict(&m->problem, p, &p->same);
        p->after_ns = predict(&m->problem, p, plan);
        p->doubted = p->before_ns > 0 && p->after_ns > 0;
    }
}

static void apply_part(struct dmn_adapt_change *c, struct part *p, struct dmn_model *m)
{
    base_autofree struct pl_plan *plan = malloc(sizeof(*plan));
    struct pl_ep_set before_eps = *pl_current_eps(m->pipe);
    const char *algorithm = plan ? choose(m, c, p, plan) : NULL;
    char before[PL_PLAN_TEXT_MAX];
    struct tun_problem old = m->problem;
    int error;

    dmn_model_plan_text(m, before);
    if (!algorithm) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: no plan for the cores that are left; its threads share them",
                     m->name);
        tell_nothing(m, c, "no plan was found for them", "failed");
        return;
    }
    keep_home(m);
    m->problem = p->problem;
    dmn_planner_clocks_free(m);
    pl_set_eps(m->pipe, &c->eps);
    error = dmn_adapt_switch(m, plan, algorithm, !p->slowed);
    if (error) {
        m->problem = old;
        pl_set_eps(m->pipe, &before_eps);
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.model = m->name},
                     "model %s: its plan could not be moved to other cores: %s", m->name,
                     strerror(error < 0 ? -error : EBUSY));
        tell_nothing(m, c, "the plan could not be moved", "failed");
        return;
    }
    p->problem = old; /* freed with the part */
    doubt(m, p, plan);
    if (m->adapt) {
        hand_over(m, p);
    }
    tell(m, c, p, before, algorithm);
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
            apply_part(c, &c->parts[i], m);
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

static bool moved_already(const struct dmn_daemon *d, const struct pl_ep_set *eps)
{
    bool same = same_eps(&d->eps, eps);

    for (const struct dmn_model *m = d->models; m && same; m = m->next) {
        same = same_eps(pl_current_eps(m->pipe), eps);
    }
    return same;
}

/* Return: 0, or -errno with the reason logged. */
static int find_places(struct dmn_adapt_change *c)
{
    char why[DMN_CONFIG_ERROR_MAX] = "out of memory";
    struct dmn_daemon *d = c->daemon;
    int error;

    if (!c->topology) {
        c->topology = malloc(sizeof(*c->topology));
    }
    error =
        c->topology ? dmn_eps_read(d->config, d->sysfs_root, c->topology, why, &c->eps) : -ENOMEM;
    if (!error) {
        restrict_eps(&c->eps, &c->usable);
        snprintf(why, sizeof(why), "no core of the execution places is left");
        error = c->eps.count ? 0 : -ENODEV;
    }
    if (error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s: %s; plans stay as they are",
                        c->text, why);
    }
    return error;
}

static void drop_change(struct dmn_daemon *d, const char *why)
{
    struct dmn_adapt_change *c = base_take(d->adapt->change);

    for (struct dmn_model *m = d->models; m; m = m->next) {
        tell_nothing(m, c, why, "kept");
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
    if (find_places(c) < 0) {
        drop_change(d, "no execution place has a core left, so plans stay as they are");
        return;
    }
    if (moved_already(d, &c->eps)) {
        *d->topology = *c->topology;
        drop_change(d, "no execution place has another set of cores");
        return;
    }
    c->parts = calloc(dmn_model_count(d), sizeof(*c->parts));
    error = c->parts ? 0 : -ENOMEM;
    for (struct dmn_model *m = d->models; m && !error; m = m->next) {
        c->count = i + 1;
        error = prepare_part(m, c, &c->parts[i++]);
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
