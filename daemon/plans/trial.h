/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/trial.h - measures the serving plan on live frames
 *
 * While the pipeline fills (pl_depth frames of the plan), nothing is counted. Then every departure
 * counts, until the 95 % confidence interval of the time per frame is within DMN_TRIAL_UNCERTAINTY
 * of its mean, or the budget is spent.
 *
 * If frames always waited to go in, the bottleneck is the time between departures, which includes
 * the effects of stages on each other. If the pipeline ran empty at times, departures only show the
 * pace of the clients; then the bottleneck is the slowest stage by its teams' clocks, 1 / sum
 * 1/service. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/plans/pace.h"
#include "pipeline/pipeline.h"
#include "tuner/search/search.h"

struct dmn_model;

#define DMN_TRIAL_UNCERTAINTY 0.02
#define DMN_TRIAL_STOP_FRAMES 3u

struct dmn_trial_limits {
    uint64_t frames;    /* at least this many, if the budget allows */
    uint64_t budget_ns; /* for counting; filling may take as long again */
    double stop_ns;     /* a bottleneck that is surely above this ends the trial; 0: never */
    bool every_team;    /* stop once every team has had two frames, whatever the interval */
};

struct dmn_trial {
    struct dmn_trial_limits limits;
    uint32_t epoch;
    uint64_t began_ns, window_ns; /* window_ns 0: the pipeline still fills */
    uint64_t seen, starved, last_ns;
    size_t depth;
    struct dmn_pace early, pace; /* from the first departure on; from the full pipeline on */
    struct pl_series before[PL_TEAM_MAX]; /* service of each team when counting began */
    bool stopped;
};

/** dmn_trial_begin() - measures the serving plan from now on; an old one may still drain. */
void dmn_trial_begin(struct dmn_trial *t, const struct dmn_model *m,
                     const struct dmn_trial_limits *limits);
/** dmn_trial_collected() - counts a frame that came out of the pipeline. */
void dmn_trial_collected(struct dmn_trial *t, struct dmn_model *m, const struct pl_frame *f);
/** dmn_trial_over() - Return: the trial needs no more frames. */
bool dmn_trial_over(struct dmn_trial *t, struct dmn_model *m, uint64_t now_ns);
/** dmn_trial_figures() - the time per frame of what was counted so far, in both ways
 * @ret_pace_ns: between departures; 0: frames were missing @ret_clock_ns: of the slowest stage by
 * the clocks; 0: no team of a group had a frame */
void dmn_trial_figures(const struct dmn_trial *t, const struct dmn_model *m, double *ret_pace_ns,
                       double *ret_clock_ns);
/**
 * dmn_trial_result() - the result; the plan must still serve
 *
 * @ret_ci: half width of the 95 % confidence interval of the bottleneck, relative to it; 0:
 * unknown. @ret_samples: owned (free); ret->samples points to it. Return: 0 or -ENOMEM.
 */
int dmn_trial_result(const struct dmn_trial *t, const struct dmn_model *m, uint64_t now_ns,
                     struct tun_trial *ret, struct tun_sample **ret_samples, double *ret_ci);
