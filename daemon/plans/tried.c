/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/tried.h"

#include "daemon/plans/trial.h"

/* The figures of a plan that objectives compare. */
struct figures {
    double bottleneck_ns, latency_ns;
};

struct tried_plan {
    struct pl_plan plan;
    struct figures measured, expected; /* expected: by the cost table of that time */
};

struct dmn_tried {
    struct dmn_goal goal;
    const struct tun_algorithm *algorithm;
    size_t count, room;        /* plans[0] is the one that the retune chose */
    struct tried_plan plans[]; /* distinct */
};

static bool expect(const struct tun_problem *p, const struct pl_plan *plan, struct figures *ret)
{
    struct tun_outcome o;

    if (tun_eval(p, plan, &o) != 0 || o.bottleneck_ns <= 0 || o.latency_ns <= 0) {
        return false;
    }
    *ret = (struct figures){o.bottleneck_ns, o.latency_ns};
    return true;
}

void dmn_tried_add(struct dmn_tried *t, const struct tun_problem *p, const struct pl_plan *plan,
                   double bottleneck_ns, double latency_ns)
{
    struct tried_plan *new = &t->plans[t->count];

    for (size_t i = 0; i < t->count; i++) {
        if (pl_plan_equal(&t->plans[i].plan, plan)) {
            return;
        }
    }
    if (t->count < t->room && bottleneck_ns > 0 && latency_ns > 0 &&
        expect(p, plan, &new->expected)) {
        new->plan = *plan;
        new->measured = (struct figures){bottleneck_ns, latency_ns};
        t->count++;
    }
}

struct dmn_tried *dmn_tried_new(const struct tun_problem *p, const struct dmn_goal *goal,
                                const struct tun_algorithm *algorithm,
                                const struct tun_trial *chosen, size_t room)
{
    struct dmn_tried *t;

    if (chosen->failed || !chosen->frames || goal->objective == TUN_POWER) {
        return NULL;
    }
    t = calloc(1, sizeof(*t) + (room + 1) * sizeof(t->plans[0]));
    if (t) {
        t->goal = *goal;
        t->algorithm = algorithm;
        t->room = room + 1;
        dmn_tried_add(t, p, &chosen->plan, chosen->measured.bottleneck_ns,
                      chosen->measured.latency_ns);
    }
    if (t && !t->count) {
        free(base_take(t));
    }
    return t;
}

static bool same_goal(const struct dmn_goal *a, const struct dmn_goal *b)
{
    return a->objective == b->objective && a->fps == b->fps && a->latency_ms == b->latency_ms;
}

/* What the measurement would be now. Return: false: the plan no longer fits. */
static bool outcome_now(const struct tried_plan *t, const struct tun_problem *p,
                        struct tun_outcome *ret)
{
    struct figures now;

    if (!tun_fits(p, &t->plan) || !expect(p, &t->plan, &now)) {
        return false;
    }
    *ret = (struct tun_outcome){
        .bottleneck_ns = t->measured.bottleneck_ns * now.bottleneck_ns / t->expected.bottleneck_ns,
        .latency_ns = t->measured.latency_ns * now.latency_ns / t->expected.latency_ns};
    return true;
}

const struct pl_plan *dmn_tried_best(const struct dmn_tried *t, const struct tun_problem *p,
                                     const struct dmn_goal *goal,
                                     const struct tun_solution *predicted,
                                     struct dmn_origin *origin)
{
    const struct pl_plan *best = NULL;
    struct tun_outcome outcome, other;
    bool measured = false;

    if (!t || !same_goal(&t->goal, goal) || !outcome_now(&t->plans[0], p, &outcome)) {
        return &predicted->plan;
    }
    best = &t->plans[0].plan;
    outcome.bottleneck_ns *= 1 - DMN_TRIAL_UNCERTAINTY;
    outcome.latency_ns *= 1 - DMN_TRIAL_UNCERTAINTY;
    for (size_t i = 0; i < t->count; i++) {
        measured |= pl_plan_equal(&t->plans[i].plan, &predicted->plan);
        if (i > 0 && outcome_now(&t->plans[i], p, &other) && tun_better(p, &other, &outcome)) {
            best = &t->plans[i].plan;
            outcome = other;
        }
    }
    if (!measured && tun_better(p, &predicted->outcome, &outcome)) {
        return &predicted->plan;
    }
    *origin = (struct dmn_origin){.from = DMN_FROM_SEARCH, .algorithm = t->algorithm};
    return best;
}
