/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/oneboard/options.h - the ways to run one segment of a space (tuner/oneboard/space.h) */
#pragma once

#include <math.h>

#include "tuner/oneboard/space.h"
#include "tuner/outcome.h"

#define TUN_NEED_TOLERANCE 1e-13 /* of a rate: sums of rates in another order */

/* A way to run a segment: cores, and what it adds to the figure. */
struct tun_option {
    uint16_t row, last;
    double figure;     /* what the program adds up: ns or nJ, 0 in the period program */
    double ns;         /* BOTH: no frame stays longer in a team; the figure is nJ */
    double slowest_ns; /* no team is slower */
    uint16_t batch;    /* its teams take 1 << batch frames at once */
};
enum tun_figure { TUN_FIGURE_NONE, TUN_FIGURE_LATENCY, TUN_FIGURE_ENERGY, TUN_FIGURE_BOTH };
#define TUN_WAYS_MAX 512u /* options for BOTH of a segment; more are left out: .cut */

/* Room for making options; reused for every segment of one program. */
struct tun_maker {
    double *rate, *ep_rate, *least;
    int16_t *stair, *before;
    uint16_t order[PL_CPU_MAX];
    struct tun_option *options; /* [option_max], owned */
    size_t option_max, room;    /* room: for the figure at hand */
    double latency_ns;          /* BOTH: no frame stays longer; INFINITY, or set by the user */
    bool cut;
};
#define TUN_MAKER_NULL ((struct tun_maker){0})
/** tun_maker_init() - Return: 0 or -ENOMEM. */
int tun_maker_init(const struct tun_space *s, struct tun_maker *ret);
void tun_maker_deinit(struct tun_maker *m);

/** tun_make() - the options of a segment of which none is worse in both cores and figure (BOTH: in
 * cores, energy and slowest team); the period is at most 1 / need. Return: how many, in
 * m->options. */
size_t tun_make(const struct tun_space *s, struct tun_maker *m, size_t from, size_t to, double need,
                enum tun_figure figure);

/** tun_option_ns() - the period of a segment run so. */
double tun_option_ns(const struct tun_space *s, size_t from, size_t to, const struct tun_option *o);

/** tun_need() - the rate that keeps the period; a hair below it, see TUN_NEED_TOLERANCE. */
static inline double tun_need(double period_ns)
{
    return isfinite(period_ns) ? (1 - TUN_NEED_TOLERANCE) / period_ns : 1e-300;
}
