/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt/adapter.h - notices that the machine changed, and plans again
 *
 * Every adapt.window_ms the newest sensor snapshot and the clocks of every model's teams form one
 * window for tuner/adapt/adapt.h, which says when a decision is due. Queued work solves it on a
 * copy. The loop then switches, or if planner.algorithm is not exact starts its search; measures
 * the new plan and switches back if it is worse than predicted.
 *
 * A change of cores (daemon/machine/hotplug.c) leads at once to new EPs, a new cost table that
 * carries over what was learned of each core, and a plan for them. In a state of the machine (EPs,
 * governors, limits) that was seen before, the plan saved for it serves again.
 *
 * A plan that a user set (by hand or in the configuration) is not replaced while its cores exist.
 * Nothing is watched during a retune, a switch or a profile. While a correction for interference is
 * active, the model's cost table does not learn (dmn_plans.held()): it holds the times of
 * undisturbed cores. Threads: the loop thread.
 */
#pragma once

#include "daemon/plans/history.h"
#include "daemon/service/work.h"
#include "pipeline/pipeline.h"
#include "tuner/adapt/adapt.h"
#include "tuner/adapt/apart.h"
#include "tuner/adapt/turns.h"

struct dmn_adapt;
struct dmn_model;
struct dmn_plans;

/** dmn_adapt_start() - starts to watch the models of @plans. Call after hotplug and gpio have been
 * started. @plans: borrowed. Return: 0 with @ret owned, or -ENOMEM. */
int dmn_adapt_start(struct dmn_plans *plans, struct dmn_adapt **ret);
/** dmn_adapt_stop() - stops; queued decisions are detached. Its memory is freed in the
 * loop's next turn, after the models. Takes NULL. Return: NULL. */
struct dmn_adapt *dmn_adapt_stop(struct dmn_adapt *adapt);
/** dmn_adapt_configure() - applies the keys of adapt after a reload, to every model. Takes NULL. */
void dmn_adapt_configure(struct dmn_adapt *adapt);

enum dmn_adapt_phase {
    DMN_ADAPT_OFF,
    DMN_ADAPT_PINNED,  /* a user's plan serves */
    DMN_ADAPT_WAITING, /* too little is known yet, or something else changes plans */
    DMN_ADAPT_WATCHING,
    DMN_ADAPT_DECIDING,
    DMN_ADAPT_VERIFYING,
    DMN_ADAPT_TUNING, /* a search runs that a decision asked for */
};

/* The state of adaptation of one model. */
struct dmn_adapt_state {
    enum dmn_adapt_phase phase;
    bool known;                     /* the members below are valid; false: never watched */
    bool decided;                   /* there was a decision */
    enum tun_cause cause;           /* of the last decision */
    enum dmn_event_outcome outcome; /* of the last decision */
    enum tun_hold held;             /* the guard that held the last decision back */
    bool corrected;                 /* a correction for interference is active */
    uint64_t cooldown_ns;
    uint64_t windows; /* watched so far */
    unsigned decisions, switches;
};

extern const char *const dmn_adapt_phase_names[]; /* by enum dmn_adapt_phase */

void dmn_adapt_state(const struct dmn_model *m, struct dmn_adapt_state *ret);
/** dmn_adapt_watched() - describes the group of teams @index. Return: true with @ret set; false: no
 * such group, or nothing is watched. */
bool dmn_adapt_watched(const struct dmn_model *m, size_t index, struct tun_watch_view *ret);

/*
 * ---- what adapt/ keeps for one model: dmn_model.adapt ----
 *
 * A queued decision owns its record; the loop reads it when the work is done. A model that ends
 * before that leaves the job. Plain data.
 */

#define DMN_ADAPT_PACE 8u /* windows over which throughput is measured */
#define DMN_ADAPT_SEEN 4u /* changes of the machine that wait for an event */
/* Events about what led to nothing are rationed, so that noise does not displace others: at most so
 * many at once, and one more after so many seconds. */
#define DMN_ADAPT_CHANGES 16.0 /* of governors, limits and heat */
#define DMN_ADAPT_CHANGES_S 60.0
#define DMN_ADAPT_KEPT 4.0 /* measurements */
#define DMN_ADAPT_KEPT_S 300.0

/* A decision as queued work. */
struct dmn_adapt_job {
    struct dmn_job work;
    struct dmn_model *model;
    struct tun_record record;     /* owned, until the event has it */
    struct tun_decision decision; /* owned, if result is 0 */
    uint32_t epoch;               /* of the plan that is decided on */
    uint64_t began_ns;
    int result;
    struct dmn_origin origin; /* of the plan that served before a search */
    bool known;               /* it chose the plan known for this state of the machine */
    /* owned: the record and the decision, before a known plan replaced it; NULL: not yet */
    struct dmn_decided *told;
};

/* A team's counters at the end of the last window. */
struct dmn_adapt_count {
    struct pl_series service, work;
    uint64_t runs, busy_ns, cpu_ns;
    uint64_t held_ns; /* busy_ns, and with what it computed at the time */
};

struct dmn_adapt_model {
    struct tun_adapt *watch; /* owned */
    bool serving;            /* the watch knows the serving plan */
    uint32_t epoch;          /* of the plan that is watched, or is to be */
    uint32_t pins_epoch;     /* of the plan whose teams were found to be pinned */
    uint64_t epoch_ns;       /* when `epoch` was first seen */
    uint64_t window_ns;      /* when the last window ended; 0: none yet */
    struct dmn_adapt_count counts[PL_TEAM_MAX];
    uint32_t counts_epoch; /* of the plan that they are for */
    /* what ran alone on a core in the last window, by the cost table: teams of one core that had a
     * frame */
    struct tun_core_seen alone[PL_TEAM_MAX];
    size_t alone_count;
    unsigned fed;   /* windows in a row at whose ends frames waited for every team */
    double busiest; /* part of the last window in which the busiest teams computed */
    bool starved;   /* in it even the busiest teams of all models waited for frames */
    bool cold;      /* so it was, or a moment ago: caches are not as work leaves them */
    uint64_t rest_ns, rested_at; /* end of the last such window; frames collected by then */
    uint64_t warm_from;          /* frames collected when they had last been cold */
    /* of windows of late that were not cold: for how long teams held frames, and without what
     * others took of their cores */
    double held_ns, work_ns;
    bool known;                   /* the watch expects what teams take that are not cold */
    struct tun_apart *apart;      /* owned; NULL: nothing seen yet: which cores are slower */
    uint32_t apart_epoch;         /* of the plan that it saw */
    bool suspects;                /* a core may be slower than its siblings: decisions wait */
    unsigned events;              /* TUN_EVENT_* since the last window */
    struct dmn_adapt_job *job;    /* in progress, or NULL */
    struct dmn_adapt_job *search; /* owned; NULL: none: the decision whose search runs */
    enum tun_cause asks;          /* why one plan for all models is to be made again; NONE */
    char asks_why[192];
    unsigned due;         /* TUN_EVENT_*: a search waits until the plan is watched */
    uint64_t searched_id; /* of the machine when the last search began, or at first */
    bool corrected;       /* a correction is active: factors other than 1 */
    bool alarmed;         /* a detector raised an alarm in the last window */
    /* owned: the learned table one and two seconds ago, to go back to if interference had begun by
     * then */
    struct tun_problem good[2];
    uint64_t good_ns;
    /* the plan that was last solved again, or took its place; when that was looked for; and the
     * costs of then: of the plan, and of each EP */
    uint32_t solved_epoch; /* 0: none yet */
    uint64_t solved_ns;
    double solved_period_ns, solved_level[PL_EP_MAX];
    /* departures at the end of the last windows, a ring */
    struct {
        uint64_t at_ns, collected;
    } pace[DMN_ADAPT_PACE];
    size_t pace_at;
    struct dmn_turns *turns; /* owned; NULL: none: the plan and another one take turns */
    uint64_t turns_ns;       /* what a slowdown must last to be worth turns */
    unsigned
        alike; /* windows in a row, within turns, in which no core that is split off was slow */
    /* how turns for the parts of an EP ended where no plan was better; OPEN: nothing to say */
    enum tun_verdict split_lost;
    /* a change that is being verified */
    unsigned verify_left; /* windows */
    uint64_t verify_ns, verify_collected, verify_failed;
    struct dmn_history_event *event; /* owned reference: waits for the measurement */
    struct dmn_adapt_state state;    /* but for what dmn_adapt_state() finds out */
    uint64_t state_id;               /* of the machine in the last window: gov_machine_state() */
    uint64_t state_ns;               /* since when */
    uint64_t known_ns;               /* when it was last looked whether its plan is kept */
    double quota, quota_decided; /* of the control group, now and at the last decision; 0: none */
    /* changes of the machine that no event has reported yet, oldest first */
    struct dmn_adapt_seen {
        enum tun_cause cause;
        uint64_t at_ns;
        char text[224];
    } seen[DMN_ADAPT_SEEN];
    size_t seen_count;
    double seen_left, kept_left; /* rations left, and when they were last filled */
    uint64_t seen_ns, kept_ns;
    unsigned untold; /* events withheld by the rations since the last one */
    /* from a change of cores until the watch restarts: factors of EPs whose cores stayed,
     * [EPs][units] of the new table (owned; NULL: none), and the previous plan, if it fits */
    double *carried;
    size_t carried_count;
    bool carried_contended[PL_EP_MAX];
    bool unverified;
    struct pl_plan before;
    double before_ns, after_ns; /* by the table */
    /* owned: EPs and table before cores went, for their return */
    struct pl_ep_set home_eps;
    struct tun_problem home;
};
