/* SPDX-License-Identifier: Apache-2.0 */
/* Every unit of every model on any EP, in fractions: a column of tun_divide() is an assignment of
 * every unit, and the cheapest gives each unit its min_k price_k t_uk. */

#include "base/base.h"
#include "tuner/solve/divide.h"
#include "tuner/solve/mix.h"
#include "tuner/solve/solve.h"

struct units {
    const struct tun_wish *wishes;
    size_t count;
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

/* Adds what a frame takes of each EP's cores if each unit runs where it is cheapest, @rate times.
 * Return: what it costs. */
static double assign(const struct tun_problem *p, const double *ns, double rate,
                     const double *price, double *io_load)
{
    double sum = 0;

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
        io_load[best] += rate * ns[best * p->unit_count + u];
        sum += rate * least;
    }
    return sum;
}

static double cheapest(void *arg, const double *price, double *ret_load, void *ret_column)
{
    const struct units *of = arg;
    double sum = 0;

    (void)ret_column;
    memset(ret_load, 0, of->wishes[0].p->ep_count * sizeof(*ret_load));
    for (size_t m = 0; m < of->count; m++) {
        sum += assign(of->wishes[m].p, of->ns[m], of->wishes[m].rate, price, ret_load);
    }
    return sum;
}

double tun_mix_bound_ns(const struct tun_wish *wishes, size_t count, double *ret_limits)
{
    const struct tun_problem *first = wishes[0].p;
    struct units of = {.wishes = wishes, .count = count};
    struct tun_work w = {
        .eps = first->eps, .ep_count = first->ep_count, .cheapest = cheapest, .arg = &of};
    struct tun_division d = TUN_DIVISION_NULL;
    bool known = true;

    for (size_t m = 0; m < count; m++) {
        of.ns[m] = core_times(wishes[m].p);
        known = known && of.ns[m];
    }
    if (known) {
        tun_divide(&w, &d);
    }
    for (size_t k = 0; k < first->ep_count; k++) {
        ret_limits[k] = d.price[k] * first->eps[k].cores;
    }
    tun_division_deinit(&d);
    for (size_t m = 0; m < count; m++) {
        free(of.ns[m]);
    }
    return d.bound_ns;
}

double tun_bound_limits(const struct tun_problem *p, double *ret_limits)
{
    return tun_mix_bound_ns(&(struct tun_wish){p, 1}, 1, ret_limits);
}

double tun_bound_ns(const struct tun_problem *p)
{
    double limits[PL_EP_MAX];

    return tun_bound_limits(p, limits);
}
