/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tuner/brute.h"

/* ---- every plan ---- */

struct state {
    const struct tun_problem *p;
    void (*visit)(void *arg, const struct pl_plan *plan);
    void *arg;
    struct pl_plan plan;
    size_t group_max, left[PL_EP_MAX];
};

static void next_stage(struct state *s, size_t first);

/* Any number of teams of each shape from (EP, width) on for the stage last begun. */
static void choose_teams(struct state *s, size_t ep, size_t width, size_t next)
{
    struct pl_stage_plan *stage = &s->plan.stages[s->plan.stage_count - 1];
    uint16_t group = stage->group_count;

    if (ep == s->p->ep_count) {
        if (group > 0) {
            next_stage(s, next);
        }
        return;
    }
    if (width > s->p->eps[ep].cores) {
        choose_teams(s, ep + 1, 1, next);
        return;
    }
    choose_teams(s, ep, width + 1, next);
    if (group == s->group_max) {
        return;
    }
    for (uint16_t count = 1; count * width <= s->left[ep]; count++) {
        s->left[ep] -= count * width;
        stage->groups[group] = (struct pl_group){(uint16_t)ep, (uint16_t)width, count};
        stage->group_count = (uint16_t)(group + 1);
        choose_teams(s, ep, width + 1, next);
        stage->group_count = group;
        s->left[ep] += count * width;
    }
}

static void next_stage(struct state *s, size_t first)
{
    size_t left = 0;

    if (first == s->p->unit_count) {
        s->visit(s->arg, &s->plan);
        return;
    }
    for (size_t k = 0; k < s->p->ep_count; k++) {
        left += s->left[k];
    }
    if (left == 0) {
        return;
    }
    s->plan.stage_count++;
    for (size_t last = first; last < s->p->unit_count; last++) {
        s->plan.stages[s->plan.stage_count - 1] =
            (struct pl_stage_plan){.first_unit = (uint16_t)first, .last_unit = (uint16_t)last};
        choose_teams(s, 0, 1, last + 1);
    }
    s->plan.stage_count--;
}

void every_plan(const struct tun_problem *p, void (*visit)(void *arg, const struct pl_plan *plan),
                void *arg)
{
    struct state s = {.p = p,
                      .visit = visit,
                      .arg = arg,
                      .group_max = p->boards.count > 1 ? PL_GROUP_MAX : TUN_GROUP_MAX};

    for (size_t k = 0; k < p->ep_count; k++) {
        s.left[k] = p->eps[k].cores;
    }
    next_stage(&s, 0);
}

/* ---- the best of them ---- */

#define NEAR 1e-12 /* equal sums in another order */

struct trying {
    const struct tun_problem *p;
    struct brute_plans *ret;
    double energy, energy_bottleneck;
    bool full; /* more front points than there is room for */
    size_t batch_max;
};

static void add_point(struct trying *b, double bottleneck, double latency)
{
    double(*front)[2] = b->ret->front;
    size_t kept = 0, at;

    for (size_t i = 0; i < b->ret->front_count; i++) {
        if (front[i][0] <= bottleneck && front[i][1] <= latency) {
            return;
        }
    }
    for (size_t i = 0; i < b->ret->front_count; i++) {
        if (front[i][0] < bottleneck || front[i][1] < latency) {
            front[kept][0] = front[i][0];
            front[kept++][1] = front[i][1];
        }
    }
    b->ret->front_count = kept;
    if (kept == BRUTE_POINTS_MAX) {
        b->full = true;
        return;
    }
    for (at = kept; at > 0 && front[at - 1][0] > bottleneck; at--) {
        front[at][0] = front[at - 1][0];
        front[at][1] = front[at - 1][1];
    }
    front[at][0] = bottleneck;
    front[at][1] = latency;
    b->ret->front_count++;
}

static void judge(struct trying *b, const struct pl_plan *plan)
{
    struct tun_outcome o;

    if (!tun_fits(b->p, plan) || tun_eval(b->p, plan, &o) != 0) {
        return;
    }
    b->ret->plan_count++;
    b->ret->least_bottleneck_ns = base_min(b->ret->least_bottleneck_ns, o.bottleneck_ns);
    if (!tun_keeps(b->p, &o)) {
        return;
    }
    b->ret->possible = true;
    add_point(b, o.bottleneck_ns, o.latency_ns);
    if (o.energy_nj < b->energy * (1 - NEAR)) {
        b->energy = o.energy_nj;
        b->energy_bottleneck = o.bottleneck_ns;
    } else if (o.energy_nj <= b->energy * (1 + NEAR)) {
        b->energy_bottleneck = base_min(b->energy_bottleneck, o.bottleneck_ns);
    }
}

/* Every batch of every stage from @stage on. */
static void visit_batches(struct trying *b, struct pl_plan *plan, size_t stage)
{
    if (stage == plan->stage_count) {
        judge(b, plan);
        return;
    }
    for (size_t batch = 1; batch <= b->batch_max; batch *= 2) {
        for (size_t g = 0; g < plan->stages[stage].group_count; g++) {
            plan->stages[stage].groups[g].more = (uint16_t)(batch - 1);
        }
        visit_batches(b, plan, stage + 1);
    }
}

static void visit(void *arg, const struct pl_plan *plan)
{
    struct pl_plan with = *plan;

    visit_batches(arg, &with, 0);
}

static void pick(const struct trying *b, struct brute_plans *r)
{
    double bound = INFINITY;

    r->within_bottleneck_ns = r->front[0][0];
    if (b->p->objective == TUN_POWER) {
        r->figure = b->energy;
        r->tie_bottleneck_ns = b->energy_bottleneck;
        return;
    }
    if (b->p->objective == TUN_THROUGHPUT) {
        bound = r->front[0][0] * (1 + b->p->bounds.slack) * (1 + NEAR);
    }
    for (size_t i = 0; i < r->front_count && r->front[i][0] <= bound; i++) {
        if (i == 0 || r->front[i][1] < r->figure * (1 - NEAR)) {
            r->figure = r->front[i][1];
            r->tie_bottleneck_ns = r->front[i][0];
        }
    }
}

int brute_batches(const struct tun_problem *p, size_t batch_max, struct brute_plans *ret)
{
    base_autofree struct trying *b = calloc(1, sizeof(*b));

    if (!b) {
        return -ENOMEM;
    }
    memset(ret, 0, sizeof(*ret));
    ret->least_bottleneck_ns = INFINITY;
    b->p = p;
    b->ret = ret;
    b->energy = INFINITY;
    b->batch_max = p->bounds.one_ep_stages ? 1 : batch_max;
    every_plan(p, visit, b);
    if (ret->possible) {
        pick(b, ret);
    }
    return b->full ? -ENOMEM : 0;
}

int brute_plans(const struct tun_problem *p, struct brute_plans *ret)
{
    return brute_batches(p, 1, ret);
}

static double uniform(struct tun_random *r, double low, double high)
{
    return low + (high - low) * tun_random_unit(r);
}

static void random_costs(struct tun_random *random, struct tun_problem *p)
{
    bool whole = tun_random_below(random, 3) == 0; /* small whole figures: many ties */
    bool wild = tun_random_below(random, 3) == 0;  /* wider teams need not be faster */

    for (size_t k = 0; k < p->ep_count; k++) {
        double slow = uniform(random, 1, 4);

        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                struct tun_cell *c = tun_cell_at(&p->costs, k, w, u);
                double gain = wild ? 1 : pow((double)w, 0.8);

                c->ns = whole ? 1 + (double)tun_random_below(random, 6)
                              : uniform(random, 100, 1000) * slow / gain;
                c->source = TUN_MEASURED;
            }
        }
    }
}

static void random_bounds(struct tun_random *random, struct tun_problem *p)
{
    double all = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        all += tun_cell_at(&p->costs, 0, 1, u)->ns;
    }
    p->objective = (enum tun_objective)tun_random_below(random, 3);
    if (p->objective == TUN_POWER || tun_random_below(random, 2)) {
        p->bounds.period_max_ns = all * uniform(random, 0.1, 1.2);
    }
    if (tun_random_below(random, 3) == 0) {
        p->bounds.latency_max_ns = all * uniform(random, 0.3, 1.5);
    }
    if (tun_random_below(random, 3) == 0) {
        p->bounds.stages_max = 1 + tun_random_below(random, 4);
    }
    p->bounds.one_ep_stages = tun_random_below(random, 4) == 0;
    p->bounds.slack = tun_random_below(random, 2) ? uniform(random, 0, 0.3) : 0;
}

int brute_problem(struct tun_random *random, size_t units_max, size_t cores_max,
                  struct tun_problem *ret)
{
    struct tun_ep eps[3] = {0};
    size_t ep_count = 1 + tun_random_below(random, base_min(cores_max, (size_t)3));
    size_t left = cores_max - ep_count;
    int r;

    for (size_t k = 0; k < ep_count; k++) {
        size_t more = tun_random_below(random, left + 1);

        memcpy(eps[k].name, &"abc"[k], 1);
        eps[k].cores = (uint16_t)(1 + more);
        eps[k].speed = k == 0 ? 1 : uniform(random, 0.1, 1);
        eps[k].bandwidth = uniform(random, 0.1, 1);
        eps[k].watts = tun_random_below(random, 4) ? uniform(random, 0.1, 5) : 0;
        left -= more;
    }
    r = tun_problem_init(ret, 1 + tun_random_below(random, units_max), eps, ep_count);
    if (r < 0) {
        return r;
    }
    for (size_t u = 1; u < ret->unit_count; u++) {
        ret->units[u].in_bytes = uniform(random, 0, 1000);
    }
    if (tun_random_below(random, 2)) {
        ret->handoff_ns = uniform(random, 0, 100);
        ret->handoff_ns_per_byte = uniform(random, 0, 0.5);
    }
    random_costs(random, ret);
    random_bounds(random, ret);
    return 0;
}
