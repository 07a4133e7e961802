/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/seats_sim.h - frames of several models on seats, event by event
 *
 * The policy is that of tuner/solve/admit.h. Of frames that are not due, the lowest fair tag goes
 * first, the virtual time in which the frame would leave its stop s:
 *
 *     tag = v_s + left / w_s,   w_s = weight_m x_s C_s
 *
 * where v_s grows by the time over w_s that the seat works for the stop, and left is what the frame
 * still takes of it; with weight_m the planned frames a second, w_s is the planned part of the
 * seat. A stop where nothing waited starts at the lowest v of those on its seat where something
 * does (weighted fair queueing: A. Demers, S. Keshav, S. Shenker, SIGCOMM 1989). So each seat keeps
 * to the plan on its own: with one v for all stops of a model seats drift apart, and lanes starve.
 */
#pragma once

#include "tuner/solve/lanes.h"

enum psim_arrivals {
    PSIM_EARLIEST, /* as early as the rate allows */
    PSIM_SPORADIC, /* later by a random time, half a period on average */
    PSIM_BACKLOG, /* whenever less than the window is under way; classes and deadlines do not count,
                    * tags do */
};

struct psim_seats {
    const struct tun_wish *wishes; /* [models], borrowed: rate, class, deadline */
    const struct tun_lanes *lanes; /* borrowed */
    size_t models;
    double floor;
    double weight[TUN_MIX_MAX];   /* > 0, for fair tags */
    double times[TUN_MIX_MAX];    /* its rate that it sends; 0: nothing, above 1: too much */
    double first_ns[TUN_MIX_MAX]; /* when its first frame comes */
    uint64_t dealt[TUN_MIX_MAX];  /* frames that were dealt before */
    size_t order[TUN_MIX_MAX];    /* of models whose frames come at the same time */
    size_t window;                /* frames of a model under way, at most; 1 .. PSIM_WINDOW_MAX */
    enum psim_arrivals arrivals;
    bool vary; /* units take random parts of their times */
    uint64_t seed;
    uint64_t frames; /* that all models send together; the run ends when the last one is done */
};
#define PSIM_WINDOW_MAX 128u

struct psim_seen {
    uint64_t done[TUN_MIX_MAX], late[TUN_MIX_MAX];
    double worst_ns[TUN_MIX_MAX];    /* from the release on */
    double busy_ns;                  /* of all seats */
    double ns;                       /* in which the later half of the frames was sent */
    uint64_t done_then[TUN_MIX_MAX]; /* meanwhile */
};

/** psim_seats_draw() - a run that is hard on deadlines: all models release at once when the longest
 * unit of a random stop has just begun, or at random times; as early as they may, or later; units
 * take their times, or parts of them. Models of no higher class than any with a deadline may send
 * ten times their rate.
 * @io_run: wishes, lanes, models and floor are set; sets all else but the frames. */
void psim_seats_draw(uint64_t *io_random, struct psim_seats *io_run);

/** psim_seats_run() - @io_seen: zeroed, or of earlier runs, which this one adds to; ns and
 * done_then are its own. Return: 0 or -ENOMEM. */
int psim_seats_run(const struct psim_seats *s, struct psim_seen *io_seen);
