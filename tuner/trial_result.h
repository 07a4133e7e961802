/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/trial_result.h - what running a plan showed: plain data, for searches and cost tables */
#pragma once

#include "tuner/eval.h"

/* One unit timed on one team shape during a trial. */
struct tun_sample {
    uint16_t ep, width;
    uint32_t unit;
    double ns;    /* mean */
    double sigma; /* relative standard error of that mean */
    /* that the team took at once, on average; then ns is a frame's part. 0 and 1: one */
    double frames;
};

/* What running a plan showed. */
struct tun_trial {
    struct pl_plan plan;
    struct tun_outcome measured; /* energy_nj 0 and latency_ns 0: not measured */
    double predicted_ns; /* bottleneck by the table before it ran; 0: unknown. Set by tell() */
    double spent_ns;     /* time the trial took, all told */
    uint64_t frames;
    bool stopped; /* given up early because clearly worse: measured is a lower bound */
    bool failed;  /* could not be run; measured is void */
    const struct tun_sample *samples; /* borrowed during tell(); NULL in the log */
    size_t sample_count;
};
