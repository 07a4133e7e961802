/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/mix.h - several models on one set of cores: what the cores could ever do for them,
 * and routes of their frames that come near it
 *
 * Model m is to have rate_m frames a second. Its frames may take different routes
 * (tuner/solve/route.h). Of the routes r of all models, x_mr frames a second are wanted with
 * sum_mr x_mr a_r[k] <= cores_k, where a_r[k] is the time that a frame takes cores of EP k, and
 *
 *     TUN_FAIR      max lambda:                     sum_r x_mr = lambda rate_m
 *     TUN_ENERGY    min sum_mrk x_mr a_r[k] e_k:    sum_r x_mr = rate_m
 *     TUN_SOONEST   min sum_mrk x_mr a_r[k]:        sum_r x_mr = rate_m
 *     TUN_WEIGHTED  max sum_m weight_m x_m:         sum_r x_mr = x_m <= rate_m
 *
 * with e_k = tun_time_price(). TUN_SOONEST has the least mean time that a frame is computed, so
 * the fastest cores are filled first. All are tun_divide() with a column for each choice of a
 * route for every model, the cheapest of which has each model's cheapest route. Whole copies of a
 * model and pipelines are routes. With TUN_WEIGHTED a column may leave models out, for their
 * weight; the fewest weighted frames are left out. The bound lets every unit of every frame run
 * anywhere, by teams of any width, without hand-off, and with as many frames at once as are in
 * time if they come evenly: the same with the units of all models, weighed by the rates. No plan
 * passes it.
 *
 * The mix is the maximum for teams whose cores are always busy: what queues cost in time, what wide
 * teams leave idle, and what models cost each other in caches and memory, is not in it. Nor is it
 * that an EP of 3 cores has room for only one team of 2.
 */
#pragma once

#include "tuner/solve/route.h"

struct tun_dealt { /* to a route of a model */
    size_t model;
    double share; /* of the model's frames that are given; they sum to 1 */
    struct tun_route route;
};

struct tun_mix {
    enum tun_share objective; /* as asked; TUN_FAIR instead of a least cost if not all is kept */
    double lambda;            /* the least part of a wish that is given; at least 1: all are kept */
    /* FAIR: lambda; ENERGY: the sum of busy cores times e_k; SOONEST: busy cores; WEIGHTED:
     * weighted frames a second */
    double value;
    double bound;              /* value is at most this, of a least cost at least */
    double worth[PL_EP_MAX];   /* by how much a small part of a core more betters value, a core */
    double limits[PL_EP_MAX];  /* worth times cores, in parts that sum to 1; all 0: no cores limit
                                * it */
    double busy[PL_EP_MAX];    /* of the EP's cores, if so many frames come as are given */
    double given[TUN_MIX_MAX]; /* of each wish */
    size_t count;
    struct tun_dealt *dealt; /* [count], by model, largest share first; owned */
};
#define TUN_MIX_NULL ((struct tun_mix){0})

/** tun_mix_solve() - @wishes: [count]. @changes: of the EP in a route, at most. @part: of the
 * cores' time that may be used, 0 < part <= 1; TUN_FAIR takes all, in proportion. @ret:
 * tun_mix_deinit(), also after a failure. Return: 0; -EINVAL: no model, too many, a rate, a weight
 * or an EP that makes no sense, an unknown cost, a width that no EP has, or two widths above 1;
 * -ENOMEM. Threads: any. */
int tun_mix_solve(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                  size_t changes, double part, struct tun_mix *ret);
void tun_mix_deinit(struct tun_mix *m);
/** tun_mix_of_bound() - Return: how near it is to what these cores could ever do, 0..1. */
double tun_mix_of_bound(const struct tun_mix *m);

/** tun_fairness() - how equal parts are: J = (sum x)^2 / (count sum x^2), from 1 / count (one has
 * all) to 1 (all are equal, also all 0). @x: [count >= 1], 0 or more. Source: R. Jain, D. Chiu,
 * W. Hawe, A Quantitative Measure of Fairness and Discrimination, DEC-TR-301, 1984. */
double tun_fairness(const double *x, size_t count);
