/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/boards/inner.h - what one board can do with units i..j: reach, latency and energy */
#pragma once

#include "tuner/boards/map.h"

/** tun_inner_reach() - @ret: [n + 1]: for each first unit the end of the longest segment whose
 * stages take at most @period_ns; the unit itself: none. Return: 0 or -ENOMEM. */
int tun_inner_reach(struct tun_kind *k, double period_ns, uint16_t *ret);

struct tun_point {
    double latency_ns, energy_nj;
    double period_ns; /* ENERGY: longest stage; otherwise 0 */
};
#define TUN_POINTS_MAX 16u /* of a segment; more are left out: .cut */

enum tun_want { TUN_WANT_LATENCY, TUN_WANT_ENERGY, TUN_WANT_BOTH };

/* Points of segments of one kind within one bound on the period; the other figure is INFINITY
 * unless both are wanted. Filled for a first unit when first asked for. */
struct tun_inner {
    struct tun_kind *k; /* borrowed */
    double period_ns;
    enum tun_want want;
    bool cut;
    size_t n;
    struct tun_point **rows; /* [n]: [n + 1][TUN_POINTS_MAX or 1], owned */
    uint16_t **counts;       /* [n]: [n + 1], owned */
    struct tun_inner_options {
        struct tun_option *list;
        size_t count;
        bool made;
    } * options;                /* [segments], owned; of one figure */
    struct tun_inner **tighter; /* [segments]: chains by .next, owned */
    struct tun_inner *next;
};
#define TUN_INNER_NULL ((struct tun_inner){0})
/** tun_inner_init() - Return: 0 or -ENOMEM. */
int tun_inner_init(struct tun_kind *k, double period_ns, enum tun_want want, struct tun_inner *ret);
void tun_inner_deinit(struct tun_inner *i);

/** tun_inner_points() - points of units from..to-1 of which none is better in all that is wanted.
 * @ret: borrowed. Return: how many, or -ENOMEM. */
int tun_inner_points(struct tun_inner *i, size_t from, size_t to, const struct tun_point **ret);

/** tun_inner_tighter() - the same for one segment within a bound of its own. */
int tun_inner_tighter(struct tun_inner *i, double period_ns, size_t from, size_t to,
                      const struct tun_point **ret);
