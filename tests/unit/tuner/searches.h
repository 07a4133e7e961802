/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/tuner/searches.h - runs a search against a cost table, for the tests of searches
 */
#pragma once

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/eval.h"
#include "tuner/search/search.h"

/* Random weights 1..1000; costs are weight / speed of the EP, and 0.8 of perfect for a width;
 * hand-off costs 1. */
static inline struct tun_problem t_problem(size_t units, const struct tun_ep *eps, size_t ep_count)
{
    struct tun_problem p;

    if (tun_problem_init(&p, units, eps, ep_count)) {
        abort();
    }
    p.handoff_ns = 1;
    for (size_t u = 0; u < units; u++) {
        p.units[u].weight = (double)t_range(1, 1000);
        for (size_t k = 0; k < ep_count; k++) {
            for (size_t w = 1; w <= eps[k].cores; w++) {
                *tun_cell_at(&p.costs, k, w, u) = (struct tun_cell){
                    .ns = p.units[u].weight / eps[k].speed / (w > 1 ? 0.8 * (double)w : 1),
                    .source = TUN_MEASURED,
                };
            }
        }
    }
    return p;
}

/* Return: NULL, with the reason printed, if it is refused. */
static inline struct tun_search *t_search(const char *algorithm, const struct tun_problem *p,
                                          const struct tun_options *o)
{
    char error[TUN_ERROR_MAX] = "";
    struct tun_search *s = NULL;

    if (tun_search_new(algorithm, p, o, error, &s)) {
        fprintf(stderr, "%s: %s\n", algorithm, error);
        return NULL;
    }
    return s;
}

static inline struct tun_trial t_measured(const struct tun_problem *p, const struct pl_plan *plan)
{
    struct tun_trial t = {.plan = *plan, .frames = 20};

    if (tun_eval(p, plan, &t.measured)) {
        abort();
    }
    t.spent_ns = 20 * t.measured.bottleneck_ns;
    return t;
}

typedef void (*t_spoil_fn)(struct tun_trial *t, void *context);

/* Half of the trials fail, the others are stopped. */
static inline void t_spoil_all(struct tun_trial *t, void *context)
{
    (void)context;
    if (t_random() % 2) {
        t->failed = true;
        t->measured = (struct tun_outcome){0};
    } else {
        t->stopped = true;
    }
}

/* One in three fails, one in three is stopped. */
static inline void t_spoil_some(struct tun_trial *t, void *context)
{
    if (t_random() % 3 > 0) {
        t_spoil_all(t, context);
    }
}

/* Runs the search to its end; every plan that it asks for must be valid. */
static inline void t_drive(struct tun_search *s, const struct tun_problem *p, t_spoil_fn spoil,
                           void *context)
{
    struct pl_ep_set eps;
    struct pl_plan plan;
    char error[TUN_ERROR_MAX];
    int result;

    tun_eps(p, &eps);
    while ((result = tun_search_ask(s, &plan)) == 0) {
        struct tun_trial t;

        if (pl_plan_check(&plan, &eps, p->unit_count, error, sizeof(error))) {
            T_FAIL("%s asked for a plan that is none: %s", tun_search_algorithm(s)->name, error);
        }
        T_TRUE(tun_fits(p, &plan));
        t = t_measured(p, &plan);
        if (spoil) {
            spoil(&t, context);
        }
        T_EQ(tun_search_tell(s, &t), 0);
    }
    T_EQ(result, TUN_E_DONE);
    T_EQ(tun_search_ask(s, &plan), TUN_E_DONE);
}

/* Return: how many trials repeated the plan of an earlier trial. */
static inline size_t t_repeats(const struct tun_search *s)
{
    size_t count, repeats = 0;
    const struct tun_trial *log = tun_search_log(s, &count);

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            repeats += pl_plan_equal(&log[i].plan, &log[j].plan);
        }
    }
    return repeats;
}
