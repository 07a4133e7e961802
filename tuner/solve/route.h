/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/route.h - the cheapest route of a frame at given prices of the cores
 *
 * A route runs the units in order on cores of some EP each, one core a unit, and changes the EP at
 * most a few times; each change, and the frame itself, costs a hand-off (tun_handoff_ns()). A model
 * with a width w takes w cores of one EP, all units long: w times the time for width w.
 * The cheapest is a shortest path over (unit, EP, changes left).
 *
 * A wish may limit the time that a route takes where nobody else computes (tun_wish.within). Then
 * only routes that keep to it count, if there are such: a shortest path with a limited second
 * length, found by labels of which none is cheaper and faster than another (H. C. Joksch, The
 * shortest route problem with constraints, Journal of Mathematical Analysis and Applications 14,
 * 1966). Exact; there may be as many labels as routes, which with few changes are few.
 */
#pragma once

#include "tuner/solve/wish.h"

#define TUN_CHANGES_MAX 7u /* of the EP, in a route */

struct tun_route {
    uint16_t width;                     /* of its teams, 0: 1; if it is more, there is one stage */
    uint16_t stages;                    /* changes + 1 */
    uint16_t ep[TUN_CHANGES_MAX + 1];   /* [stages] */
    uint16_t last[TUN_CHANGES_MAX + 1]; /* [stages]: its last unit */
};

struct tun_label; /* private */

struct tun_router {
    const struct tun_wish *wishes; /* borrowed */
    size_t changes, ep_count;
    double *cost;     /* [2][changes + 1][ep_count]: of cheapest ends of a route; owned */
    uint16_t *to;     /* [units][changes + 1][ep_count]: the EP of the next unit; owned */
    double *rest_ns;  /* [units + 1]: that all from this one on take at least; owned */
    size_t *of_state; /* [2][changes + 1][ep_count][2]: its labels, from and to; owned */
    size_t label_count, label_room;
    struct tun_label *labels; /* owned */
    bool no_memory;           /* for labels: then the cheapest of all routes was returned */
};

/** tun_router_init() - @wishes: [count], borrowed until tun_router_deinit(), which is called after
 * a failure, too. Return: 0 or -ENOMEM. */
int tun_router_init(const struct tun_wish *wishes, size_t count, size_t changes,
                    struct tun_router *ret);
void tun_router_deinit(struct tun_router *r);
/** tun_router_cheapest() - @router: struct tun_router. @price: [ep_count], of a core's time.
 * @ret_load: as tun_route_load(). @ret_route: struct tun_route. Return: the sum of price and load.
 */
double tun_router_cheapest(void *router, size_t model, const double *price, double *ret_load,
                           void *ret_route);

/** tun_has_ep() - Return: an EP has as many cores as the wish's width, at costs that are known. */
bool tun_has_ep(const struct tun_wish *w);
/** tun_route_load() - what a frame of the route takes of the cores. @ret_ns: [ep_count]. */
void tun_route_load(const struct tun_problem *p, const struct tun_route *r, double *ret_ns);
/** tun_route_ns() - Return: how long a frame takes where nobody else computes, by the costs that
 * deadlines are to hold for. */
double tun_route_ns(const struct tun_wish *w, const struct tun_route *r);
/** tun_route_keeps() - Return: it takes no longer than the wish's within allows; wide ones do. */
bool tun_route_keeps(const struct tun_wish *w, const struct tun_route *r);
