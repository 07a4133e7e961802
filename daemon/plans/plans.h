/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/plans/plans.h - which plan serves, and why: the state of this room, and its interface to
 * the daemon
 *
 * Owns each model's costs (planner.h, profile.h), the serving plan (switch.h, the only way to
 * change it), searches on live frames (retune.h), and the history (history.h). Uses models/ and
 * machine/, and listens to them. Reports through struct dmn_plans_listener (switch.h) and done
 * callbacks. Keeps a struct dmn_planning for each model; daemon/adapt/ says what interference
 * forbids to learn (held()).
 *
 * Threads: the loop thread.
 */
#pragma once

#include <uv.h>

#include "daemon/machine/machine.h"
#include "daemon/models/models.h"
#include "daemon/plans/history.h"
#include "tuner/problem.h"
#include "tuner/search/search.h"

struct dmn_clocks;
struct dmn_mix;
struct dmn_plans_listener;
struct dmn_profile;
struct dmn_retune;
struct dmn_streams;
struct dmn_tried;

/* What must not be learned or saved while something disturbs the model. */
struct dmn_costs_hold {
    bool learning; /* the clocks show interference: do not learn costs */
    bool cold;     /* nor replace any, as cores rest for most of the time: what they compute in
                      between takes longer, since their caches hold something else by then */
    bool trials;   /* nor from the search that it started, whose plan is not saved either */
    bool keeping;  /* nor save the plan of keeping_epoch: it suits the interference */
    uint32_t keeping_epoch;
};

struct dmn_plans {
    /* set by the owner before dmn_plans_init(); all borrowed */
    struct dmn_models *models; /* plans/ uses its state folder, too */
    struct dmn_machine *machine;
    const char *scratch_dir; /* for temporary files */
    /* set by daemon/adapt/ if it watches; NULL: anything may be learned and saved */
    struct dmn_costs_hold (*held)(const struct dmn_model *m);
    /* as well: the costs of @m as cores are slowed now, or run at other frequencies. @ret: owned if
     * 1. Return: 1; 0: as in its table; -ENOMEM. NULL: 0 */
    int (*costs)(const struct dmn_model *m, struct tun_problem *ret);
    /* state of this room */
    struct dmn_history history;
    struct dmn_plans_listener *listeners; /* borrowed */
    struct dmn_models_listener hears;
    struct dmn_gpio_listener lines;
    struct dmn_profile *profile; /* owned; NULL before dmn_plans_start() */
    struct dmn_mix *mix;         /* owned; NULL: none: by which models of DMN_FROM_MIX serve */
    uv_timer_t timer;            /* runs while there are retunes */
    bool timing;                 /* the timer is open */
};

/** dmn_plans_init() - starts to listen to models and lines, and becomes the planner of
 * @plans->models. */
void dmn_plans_init(struct dmn_plans *plans);
/** dmn_plans_start() - call once the EPs are known: makes the history and reads the saved profile.
 * Return: 0 or -ENOMEM. */
int dmn_plans_start(struct dmn_plans *plans);
/** dmn_plans_give_up() - ends every search and profile and refuses whoever waits. @why: for
 * people. */
void dmn_plans_give_up(struct dmn_plans *plans, const char *why);
/** dmn_plans_stop() - starts nothing new; models may still end. The loop must run once more. */
void dmn_plans_stop(struct dmn_plans *plans);

/** dmn_plans_settle() - goes on after a finished switch or collected frames. Called for every model
 * before the loop waits. */
void dmn_plans_settle(struct dmn_model *m);

/*
 * ---- what plans/ keeps for a model ----
 *
 * dmn_planner_prepare() makes it for a load; the model takes it over. Threads: the loop thread;
 * before that, the thread that owns the load.
 */

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
    unsigned heuristic;                /* of Shisha there */
    struct dmn_streams *streams; /* owned (free); to be measured with the first plan; NULL: no */
    bool start_due;              /* its search is to be run as soon as frames come */
    struct tun_trial measured;   /* by the last retune, of the plan it chose; frames 0: none */
    char measured_at[DMN_DATE_MAX];
    struct dmn_tried *tried;  /* owned (free); NULL: none: what the last retune measured */
    struct dmn_done switched; /* called when the previous plan has drained */
};

/** dmn_planning_free() - for a load that did not become a model. Takes NULL. Return: NULL. */
struct dmn_planning *dmn_planning_free(struct dmn_planning *p);
