/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/pace.h - how long a pipeline takes for one frame, and how sure that is
 *
 * Departures follow each other in bursts (teams of one stage finish together, a competing program
 * has a period of its own), so single gaps say nothing about the doubt of their mean. They are
 * summed in batches of equal size; between 10 and 20 batches are kept, and when there are more,
 * pairs become one batch of twice the size. With s the standard deviation of the b batch means,
 *     half = t(0.975, b - 1) * s / sqrt(b)
 * is half the width of the 95 % confidence interval (batch means; Law, Simulation Modeling and
 * Analysis, 9.5.3). Pure data and functions; any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define DMN_PACE_BATCHES 20u

struct dmn_pace {
    uint64_t start_ns, last_ns, count; /* departures after start_ns */
    uint64_t batch_from_ns;
    size_t batch_frames, in_batch, batches;
    double batch_ns[DMN_PACE_BATCHES]; /* mean gap of each */
};

/** dmn_pace_begin() - @at_ns: of the departure that the first gap begins with. @batch: frames of a
 * batch at first, at least 1: as many as may come out at once. */
void dmn_pace_begin(struct dmn_pace *p, uint64_t at_ns, size_t batch);
/** dmn_pace_add() - a frame came out; a time before the last one counts as the last one. */
void dmn_pace_add(struct dmn_pace *p, uint64_t at_ns);
/** dmn_pace_mean_ns() - time per frame; 0 before the first. */
double dmn_pace_mean_ns(const struct dmn_pace *p);
/** dmn_pace_half_ns() - half the width of the 95 % confidence interval of that mean; infinite with
 * less than two batches. */
double dmn_pace_half_ns(const struct dmn_pace *p);
/** dmn_student() - t(0.975, @freedom); infinite for 0. */
double dmn_student(size_t freedom);
