/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/trial.h - measuring the plan that serves, on live frames
 *
 * First the pipeline fills: the frames of the plan that keep it busy (pl_depth) are not counted.
 * Then each departure is, until the 95 % confidence interval of the time per frame is within
 * DMN_TRIAL_DOUBT of its mean or the budget is spent. While frames always waited to go in, the
 * bottleneck is the time between departures: it holds whatever the stages do to each other. When
 * the pipeline ran empty now and then, departures tell the pace of the clients; then it is the
 * slowest stage by its teams' clocks, 1 / sum 1/service. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/plans/pace.h"
#include "pipeline/pipeline.h"
#include "tuner/search/search.h"

struct dmn_model;

#define DMN_TRIAL_DOUBT 0.02
#define DMN_TRIAL_STOP_FRAMES 3u

struct dmn_trial_limits {
    uint64_t frames;    /* at least so many, if the budget allows */
    uint64_t budget_ns; /* of counting; filling may take as long again */
    double stop_ns;     /* a bottleneck that is surely above this ends the trial; 0: none does */
    bool every_team; /* frames are enough when every team has had two; the interval is not asked */
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

/** dmn_trial_begin() - measures the plan that serves from now on; an old one may still run dry. */
void dmn_trial_begin(struct dmn_trial *t, const struct dmn_model *m,
                     const struct dmn_trial_limits *limits);
/** dmn_trial_collected() - a frame came out of the pipeline. */
void dmn_trial_collected(struct dmn_trial *t, struct dmn_model *m, const struct pl_frame *f);
/** dmn_trial_over() - is everything known that is to be known. */
bool dmn_trial_over(struct dmn_trial *t, struct dmn_model *m, uint64_t now_ns);
/**
 * dmn_trial_result() - what it showed; the plan must still serve
 * @ret_ci: half width of the 95 % confidence interval of the bottleneck relative to it; 0: unknown.
 * @ret_samples: owned (free), what ret->samples points to. Return: 0 or -ENOMEM.
 */
int dmn_trial_result(const struct dmn_trial *t, const struct dmn_model *m, uint64_t now_ns,
                     struct tun_trial *ret, struct tun_sample **ret_samples, double *ret_ci);
