/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/lanes.h - the routes of a mix on cores
 *
 * A route says on which EP a stage runs; a lane says on which *seat*, a core. The seats of EP k are
 * numbered behind those of the EPs before it. Stages are put on the seat of their EP that has most
 * room, the heaviest first, so far as they fit; what is left is cut and fills the seats up. A route
 * whose stages are cut becomes as many lanes as there are parts.
 *
 * A stop of a wide model takes w seats at once. It sits on a *row*: w seats side by side, the first
 * of which is a multiple of w in its EP. Wide stages are put on rows first, and narrow ones beside
 * them.
 *
 * A model's frames are dealt to its R lanes so that lane i has x_i n of the first n frames, but for
 * at most 1 - 1/(2R - 2), which is the least possible (R. Tijdeman, The chairman assignment
 * problem, Discrete Mathematics 32, 1980; his algorithm is tun_lane_next()). So of any n frames in
 * a row it has at most x_i n + 2 - 1/(R - 1).
 */
#pragma once

#include "tuner/solve/mix.h"

struct tun_stop {       /* of a lane: units in order on one seat, or on a row */
    size_t seat, width; /* the first one; how many, 0: 1 */
    size_t ep, first, units;
    const double
        *unit_ns; /* [units], with the hand-off in the first one; borrowed from the lanes */
    const double *piece_ns; /* [units]: the longest piece of each; borrowed; NULL: none is cut */
    double deadline_ns;     /* from the frame's coming due in front of it; 0: none */
    double bound_ns;        /* of tun_admit(): how long it takes from then on, at most */
};

struct tun_lane {
    size_t model, stages;
    double share; /* of the model's frames; they sum to 1 */
    struct tun_stop stops[TUN_CHANGES_MAX + 1];
};

struct tun_lanes {
    size_t seats, count;
    struct tun_lane *lanes;     /* [count], by model; owned */
    double *unit_ns, *piece_ns; /* owned */
};
#define TUN_LANES_NULL ((struct tun_lanes){0})

/** tun_lanes_init() - @wishes, @mix: of tun_mix_solve(). @even: all seats of an EP have the same
 * load; otherwise as few stages as possible are cut. @ret: tun_lanes_deinit(), also after a
 * failure; without deadlines (tun_lanes_due()). Return: 0 or -ENOMEM. Threads: any. */
int tun_lanes_init(const struct tun_wish *wishes, const struct tun_mix *mix, bool even,
                   struct tun_lanes *ret);
void tun_lanes_deinit(struct tun_lanes *l);

/** tun_lanes_due() - splits each model's deadline D over its stops:
 *     D_j = D (C_j + B_j) / sum_i (C_i + B_i)
 * with C_j the stop's time and B_j the longest unit of anything else on its seat: the split with
 * the least max_j (C_j + B_j) / D_j. */
void tun_lanes_due(const struct tun_wish *wishes, struct tun_lanes *io_lanes);

/** tun_lanes_cut() - has a model's unit run in @pieces, on all lanes. 1: in one again. Not of wide
 * models. */
void tun_lanes_cut(const struct tun_wish *wishes, struct tun_lanes *io_lanes, size_t model,
                   size_t unit, size_t pieces);

/** tun_stop_width() - Return: how many seats it takes at once. */
static inline size_t tun_stop_width(const struct tun_stop *s)
{
    return s->width > 1 ? s->width : 1;
}
/** tun_stop_on() - Return: it takes the seat. */
static inline bool tun_stop_on(const struct tun_stop *s, size_t seat)
{
    return s->seat <= seat && seat < s->seat + tun_stop_width(s);
}
/** tun_piece_ns() - Return: how long the stop's unit @u, from its first on, runs until others may
 * go: to its end, or for the longest of its pieces. */
static inline double tun_piece_ns(const struct tun_stop *s, size_t u)
{
    return s->piece_ns ? s->piece_ns[u] : s->unit_ns[u];
}
/** tun_stop_ns() - Return: of all units. @ret_longest: NULL, or which unit has the largest
 * tun_piece_ns(), from the stop's first on. */
double tun_stop_ns(const struct tun_stop *s, size_t *ret_longest);

/** tun_lane_next() - Return: the lane of frame number sum @dealt, from 0 on. @lanes, @io_dealt:
 * [count], of one model; how many frames each had, one more for the one that gets it. */
size_t tun_lane_next(const struct tun_lane *lanes, size_t count, uint64_t *io_dealt);
