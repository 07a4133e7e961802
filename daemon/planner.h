/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/planner.h - what a model costs on these cores, and the plans that follow from it
 *
 * A model's struct tun_problem is everything that is known of it: its units, the kinds of cores
 * (the daemon's EPs in their order), a time for each unit on each (kind, width) with its source and
 * doubt, and what a hand-off costs. It begins with what an earlier run saved, what the calibration
 * predicts and the weights; the per-unit clocks of the plan that serves correct it from then on.
 * Plans are solved on it (tuner/solve.h), on a work thread where one is at hand, always on a copy.
 * Threads: the loop thread, unless it says otherwise.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/pipeline.h"
#include "tuner/search/search.h"
#include "tuner/solve.h"

/* Clocks of the plan that serves at earlier moments; all owned, NULL: none. */
struct dmn_clocks;
struct dmn_planner_clocks {
    struct dmn_clocks *mark;    /* where a trial begins */
    struct dmn_clocks *base[2]; /* where learning begins, and where it will begin next */
    uint64_t collected;         /* frames out of the pipeline when the table last learned */
    bool learned;               /* something since it was last saved */
    uint64_t saved_ns;          /* when that was; 0: not yet in this run */
};

struct mdl_model;
struct dmn_config;
struct dmn_daemon;
struct dmn_load;
struct dmn_model;

/* What is wanted of a plan. */
struct dmn_goal {
    enum tun_objective objective;
    double fps;        /* the bottleneck is to keep at least that; 0: no bound. POWER needs it */
    double latency_ms; /* the worst frame is to stay below that; 0: no bound */
};
/** dmn_goal_config() - the goal that the configuration names. */
struct dmn_goal dmn_goal_config(const struct dmn_config *config);
/** dmn_objective_name() - "throughput", "latency", "power". Static. */
const char *dmn_objective_name(enum tun_objective objective);
/** dmn_objective_find() - by name. Return: 0, or -EINVAL for another name. */
int dmn_objective_find(const char *name, enum tun_objective *ret);

/**
 * dmn_planner_prepare() - what is known of a loaded model before it serves: l->problem with units,
 * kinds, saved, calibrated and predicted costs, every cell a figure; l->first and l->algorithm
 * where the configuration or an earlier run has a plan
 * @config: whose goal it is to be. Blocks on the state file.
 *
 * Return: 0; -EINVAL (a plan of the configuration that does not fit, more cores than PL_CPU_MAX) or
 * -ENOMEM, with l->error set.
 */
int dmn_planner_prepare(const struct dmn_daemon *d, const struct dmn_config *config,
                        struct dmn_load *l);
/** dmn_planner_first() - solves for the first plan where l->first is not there yet, for the goal of
 * the configuration at the time of dmn_planner_prepare(). Any thread that has @l for itself. When
 * no plan keeps the bounds, the fastest. May take tens of ms. Return: 0, or -errno with l->error
 * set. */
int dmn_planner_first(struct dmn_load *l);
void dmn_planner_deinit(struct dmn_model *m);
/** dmn_planner_clocks_free() - no mark any more, and learning begins with the present plan. */
void dmn_planner_clocks_free(struct dmn_model *m);

/** dmn_planner_guessed() - was this figure made of the unit's weight alone. Any thread. */
bool dmn_planner_guessed(const struct tun_cell *c);
/** dmn_planner_guess() - makes guesses by weight again from what was measured since: the weight of
 * a unit tells no time, and beside measured times its guess misjudges every kind that has not run.
 * Any thread. */
void dmn_planner_guess(struct tun_problem *p);

/**
 * dmn_planner_problem() - a deep copy with the goal as objective and bounds, guesses made again
 * Bounds: fps as period_max_ns, latency, planner.stages_max. @goal: NULL: the configuration's.
 * @ret: owned (tun_problem_deinit), good for any thread. Return: 0; -EINVAL: POWER without fps;
 * -ENOMEM.
 */
int dmn_planner_problem(const struct dmn_model *m, const struct dmn_goal *goal,
                        struct tun_problem *ret);

/** dmn_planner_mark() - dmn_planner_trial() looks at frames after this moment; without a mark, or
 * once another plan serves, at all since the plan began. Return: 0 or -ENOMEM (mark unchanged). */
int dmn_planner_mark(struct dmn_model *m);

/**
 * dmn_planner_trial() - the clocks of the plan that serves, since the mark, as a trial
 * measured: mean service times of the teams (team_ns; a group's teams are merged), stage periods
 * and the bottleneck; latency_ns is the sum of the slowest team of each stage; energy_nj is 0. A
 * group of teams without a frame counts as the table has it.
 * frames: what the last stage computed. failed: a stage has no frame yet.
 * Samples: one for each (kind, width, unit) with a frame, mean and relative standard error; a
 * team's add up to its service time where the units' own means (winsorised) are less.
 * @ret_samples: owned (free), and what ret->samples points to; NULL without samples.
 * Return: 0 or -ENOMEM.
 */
int dmn_planner_trial(const struct dmn_model *m, struct tun_trial *ret,
                      struct tun_sample **ret_samples);

/** dmn_planner_learn() - takes the newest clocks into m->problem; costs little when no frame came.
 * The last 32 frames or more of each team count. Called once a second and before solving. */
void dmn_planner_learn(struct dmn_model *m);

/** dmn_planner_expect() - @plan by the table; team_ns and stage_ns are 0 where some unit's figure
 * is made of its weight alone. Return: false if there is such a stage, then the sums mean nothing.
 */
bool dmn_planner_expect(const struct dmn_model *m, const struct pl_plan *plan,
                        struct tun_outcome *ret);

#define DMN_SOURCE_COUNT (TUN_MEASURED + 1)
/** dmn_source_name() - "unknown", "predicted", "saved", "measured". Static. Any thread. */
const char *dmn_source_name(enum tun_source source);
/** dmn_planner_count() - cells of the table by source. Any thread. */
void dmn_planner_count(const struct tun_problem *p, size_t ret[DMN_SOURCE_COUNT]);

/** dmn_problem_json() - a table in the recorded form that pipesim reads; @model: for the units'
 * names, NULL: their numbers. New reference. Any thread. */
json_t *dmn_problem_json(const struct tun_problem *p, const struct mdl_model *model,
                         const char *name);
/** dmn_planner_problem_json() - the costs of dmn_planner_problem() in the recorded form that
 * pipesim reads. New reference. */
json_t *dmn_planner_problem_json(const struct dmn_model *m);
