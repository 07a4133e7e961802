/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/tuner/admit_set.h - random models on lanes, and simulations against their bounds */
#pragma once

#include "tuner/pipesim/seats_sim.h"
#include "tuner/solve/promise.h"

#define MODELS 5u
#define LANES 3u
#define STOPS 3u
#define UNITS 5u
#define SEATS 4u

struct set {
    struct tun_wish wishes[MODELS];
    struct tun_lane lane[MODELS * LANES];
    double unit_ns[MODELS * LANES * STOPS * UNITS], piece_ns[MODELS * LANES * STOPS * UNITS];
    bool cut;     /* some units run in pieces */
    size_t width; /* of wide models; 1: there are none */
    struct tun_lanes lanes;
    size_t models;
    bool takes_several[MODELS]; /* models that are wide */
    double floor;
};

/** set_load() - Return: of the busiest seat. */
double set_load(const struct set *x);
/** set_init() - @load: of the busiest seat. @late: deadlines are up to so many times what a frame
 * takes alone. @wide: some models take several seats at once. */
void set_init(struct set *x, double load, int64_t late, bool wide);
/** set_hold() - all frames are within the bounds. */
void set_hold(const struct set *x, const struct tun_answer *a, uint64_t frames,
              struct psim_seen *seen);
