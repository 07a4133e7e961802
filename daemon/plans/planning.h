/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/planning.h - what plans/ keeps for a model
 *
 * dmn_planner_prepare() makes it for a load; the model takes it over. Threads: the loop thread;
 * before that, the thread that owns the load.
 */
#pragma once

#include "daemon/models/done.h"
#include "daemon/plans/plans.h"
#include "tuner/problem.h"
#include "tuner/search/search.h"

struct dmn_clocks;
struct dmn_retune;
struct dmn_tried;

/* Clocks of the serving plan at earlier moments; all owned, NULL: none. */
struct dmn_planner_clocks {
    struct dmn_clocks *mark;    /* start of a trial */
    struct dmn_clocks *base[2]; /* start of the present and of the next learning window */
    uint64_t collected;         /* frames out of the pipeline at the last learning */
    bool learned;               /* anything since the last save */
    uint64_t saved_ns;          /* time of the last save; 0: not in this run */
};

/* How the trials of retunes ended. */
enum dmn_trial_end {
    DMN_TRIAL_COMPLETED,
    DMN_TRIAL_STOPPED, /* surely worse than the best plan */
    DMN_TRIAL_FAILED,  /* the plan could not be built or measured */
    DMN_TRIAL_ENDS
};

/* What happened to the plans of a model since it was loaded, for metrics. */
struct dmn_plan_counts {
    uint64_t events[DMN_CAUSE_COUNT][DMN_OUTCOME_COUNT]; /* written by switch.c */
    uint64_t trials[DMN_TRIAL_ENDS];                     /* written by retune_event.c */
    double trial_s;                                      /* that they took */
};

struct dmn_planning {
    struct dmn_plans *of; /* borrowed */
    struct dmn_plan_counts counts;
    struct tun_problem problem;  /* owned: the model's costs on these cores */
    struct tun_outcome expected; /* of the serving plan, by the table when it began */
    bool expects;                /* `expected` is complete */
    struct json_t *kept;         /* owned; NULL: none: saved states (daemon/plans/kept.c) */
    struct dmn_planner_clocks clocks;
    struct dmn_retune *retune;         /* owned; the search in progress, or NULL */
    const struct tun_algorithm *start; /* finds the first plan */
    bool start_due;                    /* its search is to be run as soon as frames come */
    struct tun_trial measured; /* by the last retune, of the plan it chose; frames 0: none */
    char measured_at[DMN_DATE_MAX];
    struct dmn_tried *tried;  /* owned (free); NULL: none: what the last retune measured */
    struct dmn_done switched; /* called when the previous plan has drained */
};

/** dmn_planning_free() - for a load that did not become a model. Takes NULL. Return: NULL. */
struct dmn_planning *dmn_planning_free(struct dmn_planning *p);
