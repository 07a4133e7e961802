/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/pace.h - the time per frame of a pipeline, and its uncertainty
 *
 * Departures come in bursts (teams of one stage finish together, a competing program has its own
 * period), so single gaps say nothing about the uncertainty of their mean. They are summed in
 * batches of equal size. Between 10 and 20 batches are kept; beyond that, pairs merge into batches
 * of twice the size. With s the standard deviation of the b batch means,
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
    double batch_ns[DMN_PACE_BATCHES]; /* mean gap of each batch */
};

/** dmn_pace_begin() - @at_ns: the departure that starts the first gap. @batch: frames in the first
 * batches, at least 1: as many as may come out at once. */
void dmn_pace_begin(struct dmn_pace *p, uint64_t at_ns, size_t batch);
/** dmn_pace_add() - adds a departure; a time before the last one counts as the last one. */
void dmn_pace_add(struct dmn_pace *p, uint64_t at_ns);
/** dmn_pace_mean_ns() - Return: time per frame; 0 before the first. */
double dmn_pace_mean_ns(const struct dmn_pace *p);
/** dmn_pace_half_ns() - Return: half the width of the 95 % confidence interval of the mean;
 * infinite with fewer than two batches. */
double dmn_pace_half_ns(const struct dmn_pace *p);
/** dmn_student() - Return: t(0.975, @freedom); infinite for 0. */
double dmn_student(size_t freedom);
