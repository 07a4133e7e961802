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

#include "pipeline/pipeline.h"
#include "tuner/search/search.h"

struct dmn_model;

/* ---- the time per frame of a pipeline, and its uncertainty: pure; any thread ---- */

/*
 * Departures come in bursts (teams of one stage finish together, a competing program has its own
 * period), so single gaps say nothing about the uncertainty of their mean. They are summed in
 * batches of equal size. Between 10 and 20 batches are kept; beyond that, pairs merge into batches
 * of twice the size. With s the standard deviation of the b batch means,
 *     half = t(0.975, b - 1) * s / sqrt(b)
 * is half the width of the 95 % confidence interval (batch means; Law, Simulation Modeling and
 * Analysis, 9.5.3).
 */
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

/* ---- trials ---- */

#define DMN_TRIAL_UNCERTAINTY 0.02
#define DMN_TRIAL_STOP_FRAMES 3u

struct dmn_trial_limits {
    uint64_t frames;    /* at least this many, if the budget allows */
    uint64_t budget_ns; /* for counting; filling may take as long again */
    double stop_ns;     /* a bottleneck that is surely above this ends the trial; 0: never */
    bool anew;          /* also what was measured before; over boards, where that costs much */
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
