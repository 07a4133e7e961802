/* SPDX-License-Identifier: Apache-2.0 */
/* Decides on a model's plan on the new EPs. */

#include "daemon/adapt/cores.h"
#include "tuner/adapt/decision_record.h"

/* How much slower by the table a plan of lower latency may be to be proposed while an EP is split.
 * Teams of unequal cores that share frames reach what the table says only with many frames in
 * flight, since answers keep their order: with three, 17 % less was measured
 * (bench/results/peers.md). Measurements decide. */
#define SPLIT_SLACK 0.1

/* Return: each new EP has only cores of one old EP. */
static bool only_less(const struct pl_ep_set *old, const struct pl_ep_set *new)
{
    bool taken[PL_EP_MAX] = {false};

    for (size_t e = 0; e < new->count; e++) {
        size_t match = pl_ep_like(old, &new->eps[e]);

        if (match == SIZE_MAX || taken[match] ||
            pl_ep_common(&new->eps[e], &old->eps[match]) != new->eps[e].cpu_count) {
            return false;
        }
        taken[match] = true;
    }
    return true;
}

/* Parts of an EP are not profiled, and no primitives were measured on them. */
static bool better_known(const struct tun_cell *than, const struct tun_cell *cell)
{
    return than->ns > 0 && !dmn_planner_guessed(than) && dmn_planner_guessed(cell);
}

/* What several frames at once gain: measured figures, and those that are missing. */
static void carry_at_once(const struct tun_problem *from, size_t old, struct tun_problem *to,
                          size_t ep)
{
    struct tun_at_once *all = from->at_once ? tun_problem_at_once(to) : NULL;

    for (size_t u = 0; all && u < to->unit_count; u++) {
        const struct tun_at_once *was = tun_at_once_at(from, old, u);
        struct tun_at_once *is = &all[ep * to->unit_count + u];

        if (was->measured || !tun_at_once_gains(is)) {
            *is = *was;
        }
    }
}

/* Copies what was learned of the same cores on other EPs. */
static void carry(const struct tun_problem *from, const struct pl_ep_set *from_eps,
                  struct tun_problem *to, const struct pl_ep_set *to_eps)
{
    if (from->unit_count != to->unit_count || from->ep_count != from_eps->count) {
        return;
    }
    to->handoff_ns = from->handoff_ns;
    to->handoff_ns_per_byte = from->handoff_ns_per_byte;
    for (size_t k = 0; k < to->ep_count; k++) {
        size_t old = pl_ep_like(from_eps, &to_eps->eps[k]);
        size_t widths = old == SIZE_MAX ? 0 : base_min(from->eps[old].cores, to->eps[k].cores);

        if (old != SIZE_MAX) {
            carry_at_once(from, old, to, k);
        }
        for (size_t w = 1; w <= widths; w++) {
            for (size_t u = 0; u < to->unit_count; u++) {
                const struct tun_cell *cell = tun_cell_at(&from->costs, old, w, u);

                if (cell->source >= TUN_SAVED ||
                    better_known(cell, tun_cell_at(&to->costs, k, w, u))) {
                    *tun_cell_at(&to->costs, k, w, u) = *cell;
                }
            }
        }
    }
    dmn_planner_guess(to);
}

/* How many times slower than expected the cores of an EP are that is split by this change: what is
 * split off by its factor more than the rest. Return: it is a part of such an EP. */
static bool split_now(const struct dmn_model *m, const struct dmn_adapt_change *c, size_t ep,
                      double *ret_slow, bool *ret_off)
{
    const struct pl_ep *e = &c->eps.eps[ep];
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    size_t match = pl_ep_like(old, e);
    bool part = false;

    *ret_off = false;
    if (match == SIZE_MAX || e->cpu_count >= old->eps[match].cpu_count) {
        return false;
    }
    for (size_t i = 0; i < c->split.count && !*ret_off; i++) {
        const struct tun_slow_core *core = &c->split.cores[i];
        const struct pl_ep one = {.cpu_count = 1, .cpus = {core->cpu}};

        if (pl_ep_common(&one, &old->eps[match]) > 0) {
            *ret_off = e->cpu_count == 1 && pl_ep_common(&one, e) > 0;
            *ret_slow = core->least * (*ret_off ? core->factor : 1);
            part = true;
        }
    }
    return part;
}

/* Return: by this change the EP lost a slowed core, or got one back that is not slowed any more:
 * what is known of its slowdown was of that core. */
static bool parted(const struct dmn_model *m, const struct dmn_adapt_change *c, size_t ep)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    size_t match = pl_ep_like(old, &c->eps.eps[ep]);

    return c->parting && match != SIZE_MAX && old->eps[match].cpu_count != c->eps.eps[ep].cpu_count;
}

/* Carries over the slowdown of cores that stay, as their interference goes on. Return: 0 or
 * -ENOMEM. */
static int carry_slow(const struct dmn_model *m, const struct dmn_adapt_change *c,
                      struct dmn_change_part *p)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    size_t units = p->problem.unit_count;

    p->slow = malloc(p->problem.ep_count * units * sizeof(*p->slow));
    if (!p->slow) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < p->problem.ep_count; k++) {
        size_t match = pl_ep_like(old, &c->eps.eps[k]);
        double slow_now = 1;
        bool off, split = split_now(m, c, k, &slow_now, &off);
        bool known = !split && match != SIZE_MAX && !parted(m, c, k);

        p->contended[k] = split && off;
        for (size_t u = 0; u < units; u++) {
            double slow = known ? dmn_adapt_slow(m, match, u, &p->contended[k]) : slow_now;

            p->slow[k * units + u] = slow;
            p->slowed |= slow != 1;
        }
    }
    return 0;
}

/* Makes the inputs of the decision: on the old EPs if cores only went, else on the new ones.
 * Return: 0 or -ENOMEM. */
static int make_record(struct dmn_model *m, const struct dmn_adapt_change *c,
                       struct dmn_change_part *p)
{
    const struct pl_ep_set *old = pl_current_eps(m->pipe);
    struct tun_record *r = &p->record;
    size_t cells;
    int error;

    p->old_eps = only_less(old, &c->eps) && m->planning->problem.ep_count == old->count;
    if (!p->old_eps && !p->fits) {
        return 0;
    }
    error = p->old_eps ? dmn_planner_problem(m, NULL, &r->problem)
                       : tun_problem_copy(&p->problem, &r->problem);
    if (error) {
        return error;
    }
    cells = r->problem.ep_count * r->problem.unit_count;
    r->slow = malloc(cells * sizeof(*r->slow));
    r->beta = malloc(r->problem.unit_count * sizeof(*r->beta));
    if (!r->slow || !r->beta) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        for (size_t u = 0; u < r->problem.unit_count; u++) {
            bool contended;

            r->slow[k * r->problem.unit_count + u] = p->old_eps
                                                         ? dmn_adapt_slow(m, k, u, &contended)
                                                         : p->slow[k * r->problem.unit_count + u];
        }
    }
    for (size_t u = 0; u < r->problem.unit_count; u++) {
        r->beta[u] = tun_beta_default(&r->problem.units[u]);
    }
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        size_t match = p->old_eps ? pl_ep_like(&c->eps, &old->eps[k]) : k;

        r->eps[k].cores = match == SIZE_MAX ? 0 : (uint16_t)c->eps.eps[match].cpu_count;
    }
    r->plan = p->old_eps ? *pl_current_plan(m->pipe) : p->same;
    r->events = c->parting                     ? TUN_EVENT_PARTS
                : c->cause == TUN_CAUSE_CPUSET ? TUN_EVENT_CPUSET
                                               : TUN_EVENT_HOTPLUG;
    r->gain_min =
        (double)dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_ADAPT_GAIN) / 1e2;
    r->budget_left = 1;
    r->measured_ns = dmn_adapt_pace_ns(m);
    return 0;
}

/* Makes the table on the new EPs, and loads the plan saved for them. */
static int prepare_table(struct dmn_model *m, const struct dmn_adapt_change *c,
                         struct dmn_change_part *p)
{
    struct dmn_machine then = *m->of->machine; /* a copy: planning is for its new EPs */
    const struct dmn_load_source source = {
        .name = m->name, .path = m->path, .kernels = m->kernels, .latest = m->latest};
    struct dmn_load *l = dmn_load_from(&source, m->of);
    int error;

    if (!l) {
        return -ENOMEM;
    }
    then.eps = c->eps;
    then.whole = c->whole;
    then.topology = c->topology;
    l->model = m->model; /* lent */
    l->kept = json_incref(m->planning->kept);
    error = dmn_planner_prepare(m->planning->of, &then, dmn_machine_config(&then), l);
    l->model = NULL;
    if (!error) {
        p->problem = l->planning->problem;
        l->planning->problem = TUN_PROBLEM_NULL;
        if (c->whole.count > 0) {
            p->problem.bounds.slack = SPLIT_SLACK;
        }
        if (l->first) {
            p->known = *l->first;
            p->known_as = l->origin;
        }
        if (m->adapt && m->adapt->home.unit_count) {
            carry(&m->adapt->home, &m->adapt->home_eps, &p->problem, &c->eps);
        }
        carry(&m->planning->problem, pl_current_eps(m->pipe), &p->problem, &c->eps);
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
    p->pinned = dmn_origin_pinned(m->origin);
    p->search = dmn_adapt_searches(m) || dmn_together(m);
    dmn_planner_learn(m);
    p->solution = calloc(1, sizeof(*p->solution));
    error = p->solution ? prepare_table(m, c, p) : -ENOMEM;
    if (error) {
        return error;
    }
    error = carry_slow(m, c, p);
    if (error) {
        return error;
    }
    p->fits = pl_plan_move(pl_current_plan(m->pipe), pl_current_eps(m->pipe), &c->eps,
                           m->planning->problem.unit_count, &p->same);
    return make_record(m, c, p);
}

static int solve(struct dmn_change_part *p)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    int error = dmn_adapt_slowed(&p->problem, p->slow, &slowed);

    return error ? error : tun_solve(&slowed, p->solution);
}

bool dmn_change_returns(const struct dmn_change_part *p)
{
    return p->known_as.from != DMN_FROM_NOBODY && (!p->slowed || p->pinned);
}

bool dmn_change_pays(const struct dmn_adapt_change *c)
{
    bool pays = c->whole.count == 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct dmn_change_part *p = &c->parts[i];

        pays |= p->fits && (p->search ||
                            (p->record.problem.unit_count && p->result == 0 && p->decision.replan));
    }
    return pays;
}

void dmn_change_solve(struct dmn_change_part *p)
{
    if (!dmn_change_returns(p) && !(p->pinned && p->fits)) {
        p->result = p->record.problem.unit_count ? tun_decide(&p->record, &p->decision) : solve(p);
    }
}

bool dmn_change_choose(const struct dmn_model *m, const struct dmn_adapt_change *c,
                       const struct dmn_change_part *p, struct pl_plan *ret,
                       struct dmn_origin *ret_origin)
{
    bool recorded = p->record.problem.unit_count > 0;

    *ret = p->same;
    *ret_origin = m->origin;
    if (p->pinned && p->fits) {
        return true;
    }
    if (dmn_change_returns(p)) {
        *ret = p->known;
        *ret_origin = p->known_as;
        return true;
    }
    if (p->fits && p->search) {
        return true;
    }
    if (recorded && p->result == 0 && p->decision.replan) {
        *ret = p->decision.plan;
        *ret_origin = DMN_ORIGIN_EXACT;
        return !p->old_eps || pl_plan_move(&p->decision.plan, pl_current_eps(m->pipe), &c->eps,
                                           m->planning->problem.unit_count, ret);
    }
    if (!recorded && p->result >= 0) {
        *ret = p->solution->plan;
        *ret_origin = DMN_ORIGIN_EXACT;
        return true;
    }
    return p->fits;
}
