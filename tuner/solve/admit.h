/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve/admit.h - whether every frame of every model with a deadline will be in time
 *
 * A seat (tuner/solve/lanes.h) runs one unit of one frame at a time, to its end; one that is run in
 * pieces counts here as that many units, of which only the longest matters. Then it takes,
 * of the frames that wait, the one of the highest class; in a class the one that is due first, and
 * those that are due before all others. A stop whose frame has waited for the time of its unit over
 * @floor while a higher level (tun_wish_level()) is anywhere runs one unit before all others.
 * Models release frames at least T = 1/rate apart: one that comes earlier is due as if it came
 * then. A frame released at a is due behind stop j of its lane at a + sum_{i<=j} D_i, whenever it
 * comes there.
 *
 * Let S be the frames of classes above c, and those of class c that are due until t, where nothing
 * of S waited at 0. Until nothing of S waits, the seat runs S, what had just begun, and floors. So
 * all of S is done at the least f > 0 with
 *
 *     f = B(t) + F(t) f + sum_{i above c} C_i rbf_i(f) + sum_{i of c} C_i dbf_i(t)
 *
 * where C_i is the time of stop i. As frames are dealt (tuner/solve/lanes.h), its lane's k-th frame
 * after another one is released at least e_k = max(0, k T, k T / x - J) after that:
 *
 *     dbf_i(t) = the number of k with e_k + D_i <= t             released and due within t
 *     rbf_i(f) = the number of k with e_k - sum_{j<i} D_j < f    may come within f
 *     B(t)     = the longest unit of what may go on outside S: of lower classes, and in c of stops
 *                with D_i > t; and one unit of each stop that floors let run
 *     F(t)     = floor / (1 + floor) for each of those
 *
 * Nobody is late if f <= t for every t at which dbf_i grows (demand: S. K. Baruah, L. E. Rosier,
 * R. R. Howell, Real-Time Systems 2, 1990; units that are not interrupted: S. K. Baruah, The
 * limited-preemption uniprocessor scheduling of sporadic task systems, ECRTS 2005). A frame of i
 * that is due at t leaves the stop at most f - (t - D_i) after it was due in front of it; the
 * largest of these is R_i (after M. Spuri, Analysis of deadline scheduled real-time systems, INRIA
 * 2772, 1996), and a frame takes at most the sum of D_j of all its stops but the last, and R of it.
 *
 * Wide stops begin a unit when they have all seats of their row (tuner/solve/lanes.h). Where one is
 * next, which goes before all that sit there, free seats are kept for it and idle. All models that
 * are wide have one width, so stops that share a seat of a row share all of it, and seats are kept
 * for one stop at a time, the first. With G the longest unit of anything else on the row:
 *
 *   - Nobody who goes after it starts while seats are kept, so that takes at most G. It begins when
 *     a wide frame comes, or when a narrow one leaves that went before it; not when a wide one
 *     leaves, as then all seats are free. So each seat of the row idles at most G for each wide
 *     frame, and for each narrow frame on any of them that can go before a wide one: their C counts
 *     with G more.
 *   - Who sits by a floor stays behind, so seats go on being kept: that costs each seat its unit.
 *   - A wide frame may wait for other seats while this one has nothing of S. So narrow stops there
 *     count it as one that comes late: dbf with D_i - R_i, rbf with R_i more.
 *   - From the release of a wide frame until it is done a seat of its row runs S or a floor's unit,
 *     or is kept. So it takes at most the f of all that the row's seats do, one after the other,
 *     with frames of the others that were there: counted as just said, at t = D.
 *
 * All R are looked for from 0 up. Once none grows they hold: the first frame that took longer would
 * have been delayed only by frames that did not.
 *
 * The test is sufficient, not necessary. It holds for models of a class and of those below it that
 * send more than their rate, not for models of higher classes that do.
 */
#pragma once

#include "tuner/solve/lanes.h"

enum tun_refusal {
    TUN_ADMITTED,
    TUN_TOO_MUCH_LOAD,   /* of the seat by this class and higher ones */
    TUN_TOO_LONG_A_UNIT, /* without it the model would be in time */
    TUN_TOO_MUCH_DEMAND, /* before the deadline */
};

struct tun_answer {
    enum tun_refusal refusal;
    /* if it is not TUN_ADMITTED: on which seat which model's frames may be late; and the model that
     * breaks it: whose unit (of the model's) is the longest, or who takes most */
    size_t seat, late, model, unit;
    double bound_ns[TUN_MIX_MAX]; /* that a frame takes from its release on, at most; 0: no deadline
                                   * or not admitted */
    double load;                  /* of the busiest seat, if all rates come */
};

/** tun_admit() - @wishes: [count], of which rates, classes and deadlines count. A model with a
 * deadline and no lane is refused. @io_lanes: sets the stops' bounds R, which hold if it
 * admits them. Wide stops have one stage each, and all the same width.
 * @floor: 0: none. Return: 0, and *ret_answer; -ENOMEM. Pure; threads: any. */
int tun_admit(const struct tun_wish *wishes, size_t count, struct tun_lanes *io_lanes, double floor,
              struct tun_answer *ret_answer);
