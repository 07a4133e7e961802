/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/wish.h - what each of several models on one set of cores is to have */
#pragma once

#include "tuner/problem.h"

#define TUN_MIX_MAX 32u /* models */

struct tun_wish {
    const struct tun_problem *p; /* borrowed; all of the same EPs, every unit's cost known for one
                                  * core */
    const struct tun_problem *slow; /* borrowed; as p, with costs that deadlines are to hold for,
                                     * such as the p99.9; NULL: those of p */
    double rate;                    /* frames a second, > 0 */
    double weight;                  /* of a frame, > 0; only TUN_WEIGHTED asks */
    unsigned class;                 /* a higher one goes first */
    size_t width;                   /* its frames take so many cores of an EP at once; 0: one */
    double deadline_ns;             /* of each frame, from its release; 0: none */
    double within; /* only routes that take at most this part of the deadline where nobody else
                    * computes, if there are such; 0: all. Of wide ones 1 */
    const uint8_t *cut_most; /* borrowed; [units]: in how many pieces each may be run, from 1 on;
                              * NULL: none is cut */
    const double *uncut; /* borrowed; [units]: part of its time that stays in one piece, in however
                          * many it is run; NULL: TUN_UNCUT */
};

/* A unit of ns that is run in n pieces takes (1 + TUN_CUT_COST log2 n) ns, and the longest of its
 * pieces takes (u + (1 - u) / n) of that, with u what is uncut: docs/mix.md */
#define TUN_UNCUT 0.05
#define TUN_CUT_COST 0.02

enum tun_share { TUN_FAIR, TUN_ENERGY, TUN_SOONEST, TUN_WEIGHTED }; /* tuner/solve/mix.h */

/** tun_wish_level() - Return: class, and in it deadlines; frames of lower levels have a floor. */
static inline unsigned tun_wish_level(const struct tun_wish *w)
{
    return 2 * w->class + (w->deadline_ns > 0);
}
/** tun_time_price() - Return: what time on a core of the EP costs by the objective: with TUN_ENERGY
 * its watts, if they are known of all EPs, else its speed relative to the fastest one, so that few
 * fast cores are used; with TUN_SOONEST 1, else 0. */
double tun_time_price(enum tun_share objective, const struct tun_problem *p, size_t ep);
/** tun_least_cost() - Return: the objective is a least cost that keeps all rates. */
static inline bool tun_least_cost(enum tun_share objective)
{
    return objective == TUN_ENERGY || objective == TUN_SOONEST;
}
