/* SPDX-License-Identifier: Apache-2.0 */
/* Every unit of every model on any EP, in fractions: a column of tun_divide() is an assignment of
 * every unit, and the cheapest gives each unit its min_k price_k t_uk. With deadlines, few frames
 * can be computed at once: the first waits for the others. */

#include "base/base.h"
#include "tuner/solve/mix_columns.h"
#include "tuner/solve/solve.h"

struct units {
    const struct tun_wish *wishes;
    double *ns[TUN_MIX_MAX]; /* [ep_count][unit_count] of each model, owned */
};

/* Return: what @frames at once take at least, each unit on whatever cores are fastest. */
static double least_ns(const struct tun_problem *p, size_t frames)
{
    double sum = 0;

    for (size_t u = 0; u < p->unit_count; u++) {
        double least = INFINITY;

        for (size_t k = 0; k < p->ep_count; k++) {
            double gain = tun_at_once_factor(tun_at_once_at(p, k, u), (double)frames);

            for (size_t w = 1; w <= p->eps[k].cores; w++) {
                double ns = tun_cell_at(&p->costs, k, w, u)->ns;

                least = ns > 0 ? base_min(least, ns * gain) : least;
            }
        }
        sum += least * (double)frames;
    }
    return sum;
}

/* Return: how many frames at once can be in time, which come evenly at so many times the rate. */
static size_t most_at_once(const struct tun_wish *w, double times)
{
    size_t n = PL_BATCH_MAX;

    while (n > 1 && w->deadline_ns > 0 &&
           (double)(n - 1) * (double)BASE_NS_PER_S / (w->rate * times) + least_ns(w->p, n) >
               w->deadline_ns) {
        n--;
    }
    return n;
}

/* The least time of cores for every EP and unit: a team of three that takes 2 ms takes 6 of them;
 * with so many frames at once. Return: owned; NULL: out of memory. */
static double *core_times(const struct tun_problem *p, size_t at_once)
{
    double *ns = calloc(p->ep_count * p->unit_count, sizeof(*ns));

    for (size_t i = 0; ns && i < p->ep_count * p->unit_count; i++) {
        size_t ep = i / p->unit_count, unit = i % p->unit_count;

        ns[i] = tun_cell_at(&p->costs, ep, 1, unit)->ns;
        for (size_t w = 2; w <= p->eps[ep].cores; w++) {
            double wide_ns = (double)w * tun_cell_at(&p->costs, ep, w, unit)->ns;

            ns[i] = wide_ns > 0 ? base_min(ns[i], wide_ns) : ns[i];
        }
        ns[i] *= tun_at_once_factor(tun_at_once_at(p, ep, unit), (double)at_once);
    }
    return ns;
}

/* Each unit where it is cheapest. */
static double assign(void *arg, size_t model, const double *price, double *ret_load, void *ret_way)
{
    const struct units *of = arg;
    const struct tun_problem *p = of->wishes[model].p;
    const double *ns = of->ns[model];
    double sum = 0;

    (void)ret_way;
    memset(ret_load, 0, p->ep_count * sizeof(*ret_load));
    for (size_t u = 0; u < p->unit_count; u++) {
        size_t best = 0;
        double least = INFINITY;

        for (size_t k = 0; k < p->ep_count; k++) {
            double cost = price[k] * ns[k * p->unit_count + u];

            if (cost < least) {
                least = cost;
                best = k;
            }
        }
        ret_load[best] += ns[best * p->unit_count + u];
        sum += least;
    }
    return sum;
}

/* @at_once: [count]. */
static int divide(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                  const size_t *at_once, struct tun_division *ret)
{
    struct units of = {.wishes = wishes};
    struct tun_columns c = {.wishes = wishes,
                            .count = count,
                            .objective = objective,
                            .part = 1,
                            .way = assign,
                            .arg = &of};
    int r = 0;

    *ret = TUN_DIVISION_NULL;
    for (size_t m = 0; m < count; m++) {
        of.ns[m] = core_times(wishes[m].p, at_once[m]);
        r = of.ns[m] ? r : -ENOMEM;
    }
    if (r == 0) {
        r = tun_columns_divide(&c, ret);
    }
    for (size_t m = 0; m < count; m++) {
        free(of.ns[m]);
    }
    return r;
}

int tun_mix_divide(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                   struct tun_division *ret)
{
    size_t at_once[TUN_MIX_MAX] = {0};
    bool fewer = false;
    double times;
    int r;

    for (size_t m = 0; m < count; m++) {
        at_once[m] = PL_BATCH_MAX;
    }
    r = divide(wishes, count, objective, at_once, ret);
    /* what all could have at most: at that rate frames come soonest */
    times = objective == TUN_FAIR && r == 0 ? (double)BASE_NS_PER_S / ret->bound_ns : 1;
    for (size_t m = 0; r == 0 && m < count; m++) {
        at_once[m] = most_at_once(&wishes[m], times);
        fewer = fewer || at_once[m] < PL_BATCH_MAX;
    }
    if (fewer) {
        tun_division_deinit(ret);
        r = divide(wishes, count, objective, at_once, ret);
    }
    return r;
}

double tun_bound_limits(const struct tun_problem *p, double *ret_limits)
{
    struct tun_division d;

    (void)tun_mix_divide(&(struct tun_wish){.p = p, .rate = 1}, 1, TUN_FAIR, &d);
    for (size_t k = 0; k < p->ep_count; k++) {
        ret_limits[k] = d.price[k] * p->eps[k].cores;
    }
    tun_division_deinit(&d);
    return d.bound_ns;
}

double tun_bound_ns(const struct tun_problem *p)
{
    double limits[PL_EP_MAX];

    return tun_bound_limits(p, limits);
}
