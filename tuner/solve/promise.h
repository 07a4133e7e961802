/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/promise.h - a plan of several models whose deadlines hold, if one is found
 *
 * The best mix comes first. Where a unit runs too long for its deadlines, it is run in twice as
 * many pieces, as long as the wish allows that. Where they are still not admitted, the seats' loads
 * are made equal, then frames stay on one kind of core, then less of the cores' time is used: each
 * time the next best mix is asked. Then the same with routes alone that take at most the deadline,
 * and parts of it (tun_wish.within) down to the least that leaves all rates room: so a frame does
 * not stay on a core that is too slow for it. If all that is refused, the model that would be late
 * takes two cores of an EP at once, then four, and so on; all models that take several take as
 * many. So it is a search in the order of the objective, not of all mixes: a refusal does not prove
 * that no mix would do.
 */
#pragma once

#include "tuner/solve/admit.h"

struct tun_cut { /* a unit that is run in pieces, on all lanes */
    size_t model, unit, pieces;
    size_t late; /* the model that would be, if it were run in half as many */
};

struct tun_promise {
    struct tun_mix mix;       /* owned */
    struct tun_lanes lanes;   /* of the mix, owned */
    struct tun_answer answer; /* not admitted: of the best mix, if all rates leave room that of the
                               * shortest routes, which this then is */
    size_t cut_count, cut_room;
    struct tun_cut *cuts;      /* [cut_count], by model and unit, owned; others run in one piece */
    size_t width[TUN_MIX_MAX]; /* cores that each model takes at once */
};
#define TUN_PROMISE_NULL ((struct tun_promise){0})

/** tun_promise_make() - @wishes: within does not count. @objective, @changes: of tun_mix_solve().
 * @floor: of tun_admit(). @ret: tun_promise_deinit(), also after a failure. Return: as
 * tun_mix_solve(). Threads: any. */
int tun_promise_make(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                     size_t changes, double floor, struct tun_promise *ret);
/** tun_promise_admit() - tun_admit(), with deadlines split over the stops of each lane anew
 *
 * While they are refused, a stop gets the part of its model's deadline that its R is of their sum.
 * Once they are admitted, frames are due behind all stops but the last as soon as they can be done
 * there, if all deadlines still hold: then a frame also takes less in all. */
int tun_promise_admit(const struct tun_wish *wishes, size_t count, double floor,
                      struct tun_lanes *io_lanes, struct tun_answer *ret_answer);
void tun_promise_deinit(struct tun_promise *p);

/** tun_refusal_name() - Return: "load", "unit" or "demand"; NULL: TUN_ADMITTED. */
const char *tun_refusal_name(enum tun_refusal refusal);
/** tun_seat_ep() - Return: the EP of a seat. @io_seat: then which of its cores, from 0 on. */
size_t tun_seat_ep(const struct tun_problem *p, size_t *io_seat);
#define TUN_REFUSAL_TEXT_MAX 320u
/** tun_refusal_text() - "Frames of a may be late on SEAT: unit 3 of b runs too long." @seat: the
 * seat's name. @late, @model: the names of those of @a, which refuses. Return: @ret. */
const char *tun_refusal_text(const struct tun_answer *a, const char *seat, const char *late,
                             const char *model, char ret[TUN_REFUSAL_TEXT_MAX]);
