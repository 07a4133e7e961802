/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/mix.h - several models on one set of cores: what the cores could ever do for them,
 * and routes of their frames that come near it
 *
 * Model m is to have rate_m frames a second. Its frames may take different routes: a route runs the
 * units in order on cores of some EP each, one core a unit, and changes the EP at most a few times;
 * each change, and the frame itself, costs a hand-off (tun_handoff_ns()). Of the routes r of all
 * models, x_mr frames a second are wanted with
 *     max lambda:  sum_r x_mr = lambda rate_m,  sum_mr x_mr a_r[k] <= cores_k
 * where a_r[k] is the time that a frame takes cores of EP k. This is tun_divide() with a column for
 * each choice of a route for every model, the cheapest of which has each model's cheapest route: a
 * shortest path over (unit, EP, changes left). Whole copies of a model and pipelines are routes.
 * The bound lets every unit of every frame run anywhere, by teams of any width, without hand-off:
 * tun_bound_ns() with the units of all models, weighed by the rates. No plan passes it.
 *
 * The mix is the maximum for one-core teams whose cores are always busy: what queues cost in time,
 * and what models cost each other in caches and memory, is not in it.
 */
#pragma once

#include "tuner/problem.h"

#define TUN_MIX_MAX 32u    /* models */
#define TUN_CHANGES_MAX 7u /* of the EP, in a route */

struct tun_wish {
    const struct tun_problem *p; /* borrowed; all of the same EPs, every unit's cost known for one
                                  * core */
    double rate;                 /* frames a second, > 0 */
};

struct tun_route {
    uint16_t stages;                    /* changes + 1 */
    uint16_t ep[TUN_CHANGES_MAX + 1];   /* [stages] */
    uint16_t last[TUN_CHANGES_MAX + 1]; /* [stages]: its last unit */
};

struct tun_dealt { /* to a route of a model */
    size_t model;
    double share; /* of the model's frames */
    struct tun_route route;
};

struct tun_mix {
    double lambda;            /* of each wish; at least 1: all are kept */
    double bound;             /* lambda is at most this */
    double limits[PL_EP_MAX]; /* by how much the EP's cores limit it; they sum to 1 */
    double busy[PL_EP_MAX];   /* of the EP's cores, if lambda of the wishes is asked for */
    size_t count;
    struct tun_dealt *dealt; /* [count], by model, largest share first; owned */
};
#define TUN_MIX_NULL ((struct tun_mix){0})

/** tun_mix_bound_ns() - of a second, what each core is busy at least for all wishes: 1e9 over the
 * bound. @wishes: [count], valid for tun_mix_solve(). @ret_limits: [ep_count], as
 * tun_bound_limits(). Return: ns; 0 if memory lacks. */
double tun_mix_bound_ns(const struct tun_wish *wishes, size_t count, double *ret_limits);

/** tun_mix_solve() - @wishes: [count]. @changes: of the EP in a route, at most. @ret:
 * tun_mix_deinit(), also after a failure. Return: 0; -EINVAL: no model, too many, a rate or an EP
 * that makes no sense, or an unknown cost; -ENOMEM. */
int tun_mix_solve(const struct tun_wish *wishes, size_t count, size_t changes, struct tun_mix *ret);
void tun_mix_deinit(struct tun_mix *m);

/** tun_route_load() - what a frame of the route takes of the cores. @ret_ns: [ep_count]. */
void tun_route_load(const struct tun_problem *p, const struct tun_route *r, double *ret_ns);
