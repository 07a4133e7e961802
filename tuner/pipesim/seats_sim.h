/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/seats_sim.h - frames of several models on seats, event by event
 *
 * The policy is that of tuner/solve/admit.h; of frames that are not due, the lowest fair tag goes
 * first:  v_m + left / weight_m,  where v_m grows by the time over weight_m that a seat works for
 * model m, and left is what the frame still takes of this seat. A model that paused starts at the
 * lowest v of those that did not. Nothing waits for a seat that could work.
 */
#pragma once

#include "tuner/solve/lanes.h"

enum psim_arrivals {
    PSIM_EARLIEST, /* as early as the rate allows */
    PSIM_SPORADIC, /* later by a random time, half a period on average */
    PSIM_BACKLOG,  /* whenever less than the window is under way */
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
    bool vary;             /* units take random parts of their times */
    uint64_t seed, frames; /* of all models; then everything runs dry */
};
#define PSIM_WINDOW_MAX 64u

struct psim_seen {
    uint64_t done[TUN_MIX_MAX], late[TUN_MIX_MAX];
    double worst_ns[TUN_MIX_MAX]; /* from the release on */
    double busy_ns;               /* of all seats */
    double ns;                    /* when the last frame was sent */
    uint64_t done_by_then[TUN_MIX_MAX];
};

/** psim_seats_run() - @io_seen: zeroed, or of earlier runs, which this one adds to; ns and
 * done_by_then are its own. Return: 0 or -ENOMEM. */
int psim_seats_run(const struct psim_seats *s, struct psim_seen *io_seen);
