/* SPDX-License-Identifier: Apache-2.0 */
/* Every unit of every model on any EP, in fractions: a column of tun_divide() is an assignment of
 * every unit, and the cheapest gives each unit its min_k price_k t_uk. */

#include "base/base.h"
#include "tuner/solve/mix_columns.h"
#include "tuner/solve/solve.h"

struct units {
    const struct tun_wish *wishes;
    double *ns[TUN_MIX_MAX]; /* [ep_count][unit_count] of each model, owned */
};

/* The least time of cores for every EP and unit: a team of three that takes 2 ms takes 6 of them;
 * with as many frames at once as a team may take. Return: owned; NULL: out of memory. */
static double *core_times(const struct tun_problem *p)
{
    double *ns = calloc(p->ep_count * p->unit_count, sizeof(*ns));

    for (size_t i = 0; ns && i < p->ep_count * p->unit_count; i++) {
        size_t ep = i / p->unit_count, unit = i % p->unit_count;

        ns[i] = tun_cell_at(&p->costs, ep, 1, unit)->ns;
        for (size_t w = 2; w <= p->eps[ep].cores; w++) {
            double wide_ns = (double)w * tun_cell_at(&p->costs, ep, w, unit)->ns;

            ns[i] = wide_ns > 0 ? base_min(ns[i], wide_ns) : ns[i];
        }
        ns[i] *= tun_at_once_factor(tun_at_once_at(p, ep, unit), PL_BATCH_MAX);
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

int tun_mix_divide(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                   struct tun_division *ret)
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
        of.ns[m] = core_times(wishes[m].p);
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
