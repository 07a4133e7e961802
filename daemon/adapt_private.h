/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/adapt_private.h - what the files of adapt share: watching (adapt.c), what is watched
 * (adapt_inputs.c), decisions (adapt_decide.c), other cores (adapt_eps*.c), known states
 * (adapt_known.c), what is told of all that (adapt_event.c, adapt_record.c, adapt_machine.c). Only
 * these include it.
 *
 * A decision at work owns its record; the loop reads it when the work is done. A model that goes
 * meanwhile leaves the job to itself.
 */
#pragma once

#include <jansson.h>
#include <uv.h>

#include "daemon/adapt.h"
#include "daemon/daemon.h"
#include "daemon/hotplug.h"
#include "governor/snapshot.h"
#include "tuner/adapt/resume.h"

#define DMN_ADAPT_PACE 8u  /* windows that throughput looks back on */
#define DMN_ADAPT_KNOWN 8u /* states of the machine whose plans are remembered */
#define DMN_ADAPT_SEEN 4u  /* changes of the machine that wait to be told */
/* Events about what led to nothing are rationed, so that noise leaves room for others: so many at
 * once, one more each so many seconds. */
#define DMN_ADAPT_CHANGES 16.0 /* of governors, limits and heat */
#define DMN_ADAPT_CHANGES_S 60.0
#define DMN_ADAPT_KEPT 4.0 /* of measurements */
#define DMN_ADAPT_KEPT_S 300.0

/* A decision as queued work. */
struct dmn_adapt_job {
    uv_work_t work;
    struct dmn_model *model;      /* NULL: nobody waits for it any more */
    struct tun_record record;     /* owned */
    struct tun_decision decision; /* owned, if result is 0 */
    uint32_t epoch;               /* of the plan it is about */
    uint64_t began_ns;
    int result;
    bool known;   /* what it led to is the plan kept for this state of the machine */
    json_t *told; /* owned: the record and what was decided, before anything was preferred to it */
};

/* What a team had counted at the end of the last window. */
struct dmn_adapt_count {
    struct pl_series service;
    uint64_t frames, busy_ns, cpu_ns;
};

struct dmn_adapt_model {
    struct tun_adapt *watch; /* owned */
    bool serving;            /* the watch was told of the plan that serves */
    uint32_t epoch;          /* of the plan the counts are of */
    uint32_t pins_epoch;     /* of the plan whose teams were seen to be pinned */
    uint64_t epoch_ns;       /* when that was first seen */
    uint64_t window_ns;      /* when the last window ended; 0: none yet */
    struct dmn_adapt_count counts[PL_TEAM_MAX];
    unsigned events;           /* TUN_EVENT_* since the last window */
    struct dmn_adapt_job *job; /* at work, or NULL */
    bool corrected;            /* a correction stands: factors other than 1 */
    bool alarmed;              /* a detector raised its voice in the last window */
    /* the table as it was learned a second and two ago, for when it turns out that something
     * foreign had begun; owned */
    struct tun_problem good[2];
    uint64_t good_ns;
    /* departures at the ends of the last windows, a ring */
    struct {
        uint64_t at_ns, collected;
    } pace[DMN_ADAPT_PACE];
    size_t pace_at;
    /* a change that is to be verified */
    unsigned verify_left; /* windows */
    uint64_t verify_ns, verify_collected, verify_failed;
    json_t *event;            /* owned reference: of the history, to be completed */
    bool tuning;              /* a search by our request runs */
    json_t *record;           /* owned: what that search was begun for */
    const char *last_cause;   /* static; NULL: no decision yet */
    const char *last_outcome; /* static */
    const char *held;         /* static: what held the last decision back; NULL: nothing */
    uint64_t windows;         /* in which a plan was watched */
    unsigned decisions, switches;
    uint64_t state_id;           /* of the machine in the last window: tun_state_id() */
    uint64_t state_ns;           /* since when */
    uint64_t known_ns;           /* when its plan was last remembered */
    double quota, quota_decided; /* of the control group, now and at the last decision; 0: none */
    struct dmn_adapt_known {
        uint64_t id, at_ns; /* id 0: free */
        struct pl_plan plan;
    } known[DMN_ADAPT_KNOWN]; /* plans that served well in states of the machine */
    /* changes of the machine that no decision has told of yet, the oldest first */
    struct dmn_adapt_seen {
        const char *cause; /* static */
        uint64_t at_ns;
        char text[224];
    } seen[DMN_ADAPT_SEEN];
    size_t seen_count;
    double seen_left, kept_left; /* rations, and when they were last filled */
    uint64_t seen_ns, kept_ns;
    unsigned untold; /* events that the rations held back since the last one */
    /* from a change of cores until the watch begins anew: factors of kinds whose cores stayed,
     * [kinds][units] of the new table (owned; NULL: none), and the plan before, if it fits */
    double *carried;
    size_t carried_count;
    bool carried_contended[PL_EP_MAX];
    bool doubted;
    struct pl_plan before;
    double before_ns, after_ns; /* by the table */
    /* places and table before cores went, to come back to; owned */
    struct pl_ep_set home_eps;
    struct tun_problem home;
};

/* What the machine's counters said between the last two snapshots; zeroed before the first. */
struct dmn_felt {
    double throttled, pressure; /* as in struct tun_record */
    uint64_t sequence, at_ns, periods, throttles, waited_us;
};

struct dmn_adapt_change; /* of cores, under way: adapt_eps.c */

/* What was last known of the cpufreq policies. */
struct dmn_adapt_machine {
    uint64_t sequence; /* of the snapshot; 0: none yet */
    size_t count;
    struct dmn_adapt_policy {
        uint32_t number;
        char governor[GOV_NAME_MAX]; /* "": unknown */
        uint64_t limit_khz;          /* 0: unknown */
        bool by_heat;
    } policies[GOV_POLICY_MAX];
};

struct dmn_adapt {
    struct dmn_daemon *daemon; /* borrowed */
    uv_timer_t timer;
    uint64_t period_ms;
    struct dmn_adapt_machine machine;
    struct dmn_adapt_change *change; /* owned; NULL: none */
    struct dmn_felt felt;
};

/* adapt_inputs.c */
/** dmn_adapt_felt() - @s: the newest snapshot, NULL: none. */
void dmn_adapt_felt(struct dmn_felt *f, const struct gov_snapshot *s);
/** dmn_adapt_kinds() - what the sensors say of the execution places; @ret: [d->eps.count]. */
void dmn_adapt_kinds(const struct dmn_daemon *d, const struct gov_snapshot *s,
                     struct tun_kind_seen *ret);
/** dmn_adapt_window() - what the teams did since the last call; @ret: [PL_TEAM_MAX]. Return: groups
 * of teams written. The first call for a plan only counts. */
size_t dmn_adapt_window(struct dmn_model *m, uint64_t now_ns, struct tun_team_seen *ret,
                        uint64_t *ret_start_ns);
/** dmn_adapt_measured() - every stage of the plan has computed so many frames. */
bool dmn_adapt_measured(const struct dmn_model *m, uint64_t frames);
/** dmn_adapt_fps() - departures a second over the last @windows; < 0: not known. */
double dmn_adapt_fps(const struct dmn_adapt_model *a, size_t windows);

/* adapt.c */
/** dmn_adapt_pinned() - is the plan that serves one that a user set. */
bool dmn_adapt_pinned(const struct dmn_model *m);
/** dmn_adapt_free_to_act() - nothing else changes the plan of @m now. */
bool dmn_adapt_free_to_act(const struct dmn_model *m);
/** dmn_adapt_forget() - the watch begins anew once the plan that serves is measured. */
void dmn_adapt_forget(struct dmn_model *m);

/* adapt_known.c */
/** dmn_adapt_remember() - the plan that serves is good for the present state; also for the next
 * start of the daemon. */
void dmn_adapt_remember(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_known() - what served when the machine was as it is now, in this run or in one before;
 * NULL: not seen yet. Borrowed until the next call of it or of dmn_adapt_remember(). */
const struct pl_plan *dmn_adapt_known(struct dmn_model *m);
/** dmn_adapt_prefer_known() - a decision about clocks, or about a quota that changed, returns to
 * the plan that is known for their state, whatever the gain and the cool-down, unless that is
 * slower by the table than what would serve otherwise by more than two figures of one plan differ.
 * Return: does it. */
bool dmn_adapt_prefer_known(struct dmn_model *m, const struct tun_record *r,
                            struct tun_decision *d);

/* adapt_decide.c */
/** dmn_adapt_decide() - @r: taken. Queues the work; without a thread the watch is told so. */
void dmn_adapt_decide(struct dmn_model *m, struct tun_record *r);
/** dmn_adapt_back() - to the plan before. */
void dmn_adapt_back(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_verify() - one window of a change that is being verified. */
void dmn_adapt_verify(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_await() - the change of plan that @event tells of is measured and completes it.
 * @event: taken. */
void dmn_adapt_await(struct dmn_model *m, json_t *event);
/** dmn_adapt_job_leave() - takes NULL. Return: NULL. */
struct dmn_adapt_job *dmn_adapt_job_leave(struct dmn_adapt_job *j);
/** dmn_adapt_switch() - pl_switch() with all that belongs to it, but the history. @keep: the plan
 * is kept for this state of the machine. Return: 0, PL_E_BUSY, -errno. */
int dmn_adapt_switch(struct dmn_model *m, const struct pl_plan *plan, const char *algorithm,
                     bool keep);

/* adapt_eps.c */
/** dmn_adapt_cores_changed() - listener of daemon/hotplug.h. */
void dmn_adapt_cores_changed(struct dmn_daemon *d, const struct dmn_hotplug_change *change);
/** dmn_adapt_change_step() - goes on with a change of cores as soon as nothing is in its way. */
void dmn_adapt_change_step(struct dmn_daemon *d);
void dmn_adapt_change_leave(struct dmn_adapt *a);

/* adapt_event.c */
struct dmn_adapt_told {
    const char *cause, *detail, *algorithm, *outcome, *before, *after;
    double fps_before, gain, duration_ms;
    json_t *record; /* stolen; NULL: none */
};
/** dmn_adapt_tell() - history and log. Return: the event, a new reference, or NULL. */
json_t *dmn_adapt_tell(struct dmn_model *m, const struct dmn_adapt_told *t);
/** dmn_adapt_complete() - what measuring showed goes into @event; @fps < 0: not measured. */
void dmn_adapt_complete(json_t *event, const char *outcome, double fps, uint64_t frames,
                        uint64_t lost);
/** dmn_adapt_detail() - one calm sentence about a decision. */
void dmn_adapt_detail(const struct tun_record *r, const struct tun_decision *d, char *ret,
                      size_t bytes);

/* adapt_machine.c */
/** dmn_adapt_machine_see() - compares the newest snapshot (NULL: none) with what was known; what
 * changed waits in every model until it is told. */
void dmn_adapt_machine_see(struct dmn_daemon *d, const struct gov_snapshot *s, uint64_t now_ns);
/** dmn_adapt_machine_told() - an event of @cause was added. Return: did a change wait for it. */
bool dmn_adapt_machine_told(struct dmn_adapt_model *a, const char *cause);
/** dmn_adapt_machine_tell() - an event for each change that no decision has told of in time. */
void dmn_adapt_machine_tell(struct dmn_model *m, uint64_t now_ns);
/** dmn_adapt_may_tell() - takes one of the rationed events about measurements that led to nothing.
 */
bool dmn_adapt_may_tell(struct dmn_adapt_model *a, uint64_t now_ns);

/* adapt_record.c */
/** dmn_adapt_record_json() - the record and what was decided, as `pipesim replay` reads it. New
 * reference. */
json_t *dmn_adapt_record_json(const struct tun_record *r, const struct tun_decision *d);
