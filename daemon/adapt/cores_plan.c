/* SPDX-License-Identifier: Apache-2.0 */
/* A model's plan on the new places: what is known of them, and which plan it is to be. */
#include <string.h>

#include "base.h"
#include "daemon/adapt_eps_private.h"

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
static int carry_slow(const struct dmn_model *m, const struct dmn_adapt_change *c,
                      struct dmn_change_part *p)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    size_t units = p->problem.unit_count;

    p->slow = malloc(p->problem.kind_count * units * sizeof(*p->slow));
    if (!p->slow) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < p->problem.kind_count; k++) {
        size_t place = dmn_places_of(old, &c->eps.eps[k]);

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
static int make_record(struct dmn_model *m, const struct dmn_adapt_change *c,
                       struct dmn_change_part *p)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    struct tun_record *r = &p->record;
    size_t cells;
    int error;

    p->old_kinds = dmn_places_only_less(old, &c->eps) && m->problem.kind_count == old->count;
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
        size_t place = p->old_kinds ? dmn_places_of(&c->eps, &old->eps[k]) : k;

        r->kinds[k].cores = place == SIZE_MAX ? 0 : (uint16_t)c->eps.eps[place].cpu_count;
    }
    r->plan = p->old_kinds ? *pl_current_plan(m->pipe) : p->same;
    r->events = strcmp(c->cause, "cpuset") == 0 ? TUN_EVENT_CPUSET : TUN_EVENT_HOTPLUG;
    r->gain_min = (double)dmn_config_int(m->daemon->config, DMN_KEY_ADAPT_GAIN) / 1e2;
    r->budget_left = 1;
    return 0;
}

/* The table on the new places, and the plan that was kept for them. */
static int prepare_table(struct dmn_model *m, const struct dmn_adapt_change *c,
                         struct dmn_change_part *p)
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
            dmn_places_carry(&m->adapt->home, &m->adapt->home_eps, &p->problem, &c->eps);
        }
        dmn_places_carry(&m->problem, pl_current_eps(m->pipe), &p->problem, &c->eps);
    }
    dmn_load_free(l);
    return error;
}

int dmn_change_prepare(struct dmn_model *m, const struct dmn_adapt_change *c,
                       struct dmn_change_part *p)
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
    p->fits = dmn_places_translate(pl_current_plan(m->pipe), pl_current_eps(m->pipe), &c->eps,
                                   m->problem.unit_count, &p->same);
    return make_record(m, c, p);
}

int dmn_change_slowed(const struct tun_problem *problem, const double *slow,
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

static int solve(struct dmn_change_part *p)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    int error = dmn_change_slowed(&p->problem, p->slow, &slowed);

    return error ? error : tun_solve(&slowed, p->solution);
}

bool dmn_change_returns(const struct dmn_change_part *p)
{
    return p->known_as && (!p->slowed || p->pinned);
}

void dmn_change_solve(struct dmn_change_part *p)
{
    if (!dmn_change_returns(p) && !(p->pinned && p->fits)) {
        p->result = p->record.problem.unit_count ? tun_decide(&p->record, &p->decision) : solve(p);
    }
}

const char *dmn_change_choose(const struct dmn_model *m, const struct dmn_adapt_change *c,
                              const struct dmn_change_part *p, struct pl_plan *ret)
{
    if (p->pinned && p->fits) {
        *ret = p->same;
        return m->algorithm;
    }
    if (dmn_change_returns(p)) {
        *ret = p->known;
        return p->known_as;
    }
    if (p->record.problem.unit_count && p->result == 0 && p->decision.replan) {
        *ret = p->decision.plan;
        return !p->old_kinds || dmn_places_translate(&p->decision.plan, pl_current_eps(m->pipe),
                                                     &c->eps, m->problem.unit_count, ret)
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
