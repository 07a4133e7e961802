/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/spans.h"

#include "base/base.h"

/* The EPs' cores in a team, counted up like digits. */
struct shape {
    uint16_t cores[PL_EP_MAX];
    bool whole; /* all cores of an EP or none */
};

static bool usable(const struct tun_problem *p, const struct tun_space_options *o, size_t ep)
{
    return !o->without[ep] && !p->eps[ep].held && p->eps[ep].cores < PL_SPAN_MAX;
}

/* Goes on to the next combination. Return: false after the last one. */
static bool next_shape(const struct tun_problem *p, const struct tun_space_options *o,
                       struct shape *s)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        if (!usable(p, o, k)) {
            continue;
        }
        if (s->cores[k] < p->eps[k].cores) {
            s->cores[k] = s->whole ? p->eps[k].cores : (uint16_t)(s->cores[k] + 1);
            return true;
        }
        s->cores[k] = 0;
    }
    return false;
}

/* Return: it is a team over several EPs. */
static bool team_of(const struct tun_problem *p, const struct shape *s, struct pl_group *ret)
{
    struct pl_group g = {.count = 1};
    size_t eps = 0, lead = SIZE_MAX, cores = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        if (s->cores[k] > 0) {
            lead = lead == SIZE_MAX || p->eps[k].speed > p->eps[lead].speed ? k : lead;
            cores += s->cores[k];
            eps++;
        }
    }
    if (eps < 2 || eps > 1 + PL_ALSO_MAX || cores > PL_SPAN_MAX) {
        return false;
    }
    g.ep = (uint16_t)lead;
    g.width = s->cores[lead];
    eps = 0;
    for (size_t k = 0; k < p->ep_count; k++) {
        if (k != lead && s->cores[k] > 0) {
            g.also[eps++] = (struct pl_also){(uint8_t)k, (uint8_t)s->cores[k]};
        }
    }
    *ret = g;
    return true;
}

static size_t teams_at_most(const struct tun_problem *p, const struct pl_group *g)
{
    size_t most = PL_TEAM_MAX;

    for (size_t k = 0; k < p->ep_count; k++) {
        size_t each = pl_group_on(g, k);

        most = each > 0 ? base_min(most, p->eps[k].cores / each) : most;
    }
    return most;
}

/* Return: @a, which spans EPs, is enough better than @b, of outcome @outcome; @gain: than that. */
static bool better(const struct tun_problem *p, const struct tun_outcome *a, int outcome,
                   const struct tun_outcome *b, double gain)
{
    double more = 1 + gain;

    if (!tun_keeps(p, a)) {
        return false;
    }
    if (outcome != 0 || p->objective != TUN_THROUGHPUT) {
        return outcome != 0 || tun_figure(p, a) * more < tun_figure(p, b);
    }
    return a->bottleneck_ns * more < b->bottleneck_ns ||
           (a->bottleneck_ns <= b->bottleneck_ns * (1 + base_max(p->bounds.slack, 0.0)) &&
            a->latency_ns * more < b->latency_ns);
}

static bool too_many(const struct tun_problem *p, const struct tun_space_options *o)
{
    size_t shapes = 1;

    for (size_t k = 0; k < p->ep_count && shapes <= TUN_SPANS_TRIED; k++) {
        shapes *= usable(p, o, k) ? p->eps[k].cores + 1u : 1u;
    }
    return shapes > TUN_SPANS_TRIED;
}

int tun_spans_try(const struct tun_problem *p, const struct tun_space_options *o, int outcome,
                  struct tun_solution *ret)
{
    struct shape shape = {.whole = too_many(p, o)};
    bool taken = false;

    if (o->forbid && o->forbid_first == 0 && o->forbid_last + 1 == p->unit_count) {
        return outcome;
    }
    while (next_shape(p, o, &shape)) {
        struct pl_plan plan = {.stage_count = 1};
        struct pl_stage_plan *stage = &plan.stages[0];
        struct tun_outcome found;

        stage->last_unit = (uint16_t)(p->unit_count - 1);
        stage->group_count = 1;
        if (!team_of(p, &shape, &stage->groups[0])) {
            continue;
        }
        for (size_t most = teams_at_most(p, &stage->groups[0]); stage->groups[0].count <= most;
             stage->groups[0].count++) {
            if (tun_eval(p, &plan, &found) == 0 &&
                better(p, &found, outcome, &ret->outcome, taken ? 0 : TUN_SPAN_GAIN)) {
                ret->plan = plan;
                ret->outcome = found;
                outcome = 0;
                taken = true;
            }
        }
    }
    return outcome;
}
