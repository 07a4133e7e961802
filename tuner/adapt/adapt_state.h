/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt_private.h - what the files of adapt share: a watch from its beginning
 * to its end (adapt.c), what the kinds' clocks do (adapt_kinds.c), what is watched (adapt_watch.c),
 * when to ask (adapt_ask.c), what a decision leads to (adapt_decided.c), what holds it back
 * (adapt_guard.c), other options (adapt_resume.c) */
#pragma once

#include "tuner/adapt.h"

#define READINGS 5u        /* of a frequency; their median counts */
#define WAITS 3u           /* windows whose median is the waiting share */
#define PAST 4u            /* plans remembered for the back-off */
#define LATE 0.3           /* share of the newest window in what is felt of the machine */
#define SLOWED 1.05        /* a factor that is worth a probe */
#define VERIFY_WINDOWS 40u /* after which a plan that is not busy is not verified */
/* Cores or a line asked; everything else waits for the guards, after having been told once. */
#define AT_ONCE (TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET | TUN_EVENT_POWER | TUN_EVENT_BUTTON)

struct tun_watched_kind {
    double readings[READINGS]; /* khz, newest last; 0: none */
    double khz, khz_table, khz_decided;
    double khz_learned;  /* for which its units' betas are right */
    double log_clock;    /* log(before / now) of the change that is being learned from */
    unsigned learn_left; /* windows until it is; 0: nothing to learn */
    unsigned governor_for, limit_for, thermal_for; /* windows for which a change is recent */
    uint64_t governor, throttles;
    double limit_khz;
    uint16_t cores, cores_decided;
    bool contended, slowed, used; /* slowed: factors above 1, whatever the cause */
};

struct tun_watch {
    uint16_t stage, group;
    uint16_t kind, width, count;
    unsigned settle_left, skip_left;
    bool voided; /* other frames come in: that they take another time is no surprise */
    unsigned quiet, refine_at; /* windows that the level is made of, and when it is taken anew */
    double expected_ns;
    double waiting_sum, waiting_base; /* share of service time off the CPU */
    unsigned waiting_count;           /* 0: unknown */
    double waits[WAITS];              /* rises in the last windows, newest last; NAN: unknown */
    double busy;                      /* share of the newest windows; 0: unknown */
    double level_before;              /* of the frequency change that is being learned from */
    enum tun_change side;             /* of its level, on which the newest windows are */
    uint64_t side_ns;                 /* since when */
    double told_level;                /* of the decision that waits for a guard */
    struct tun_detect detect;
};

struct tun_guard {
    uint64_t changed_ns; /* of the last change; guards count from here */
    uint64_t clock_ns;   /* newest time seen */
    double bucket;
    uint64_t filled_ns;
    unsigned backoff, hasty;   /* hasty: felt changes in a row that were not calm */
    bool changed;              /* ever */
    struct pl_plan past[PAST]; /* newest first */
    size_t past_count;
};

struct tun_adapt {
    struct tun_adapt_options options;
    struct tun_problem problem; /* owned */
    double *beta, *slow;        /* owned */
    double *slow_before;        /* owned: factors before a probe */
    size_t beta_count;
    struct pl_plan plan, before;
    struct pl_plan home; /* served last while every factor was 1 */
    double home_khz[PL_EP_MAX];
    double throttled, pressure; /* of late */
    struct tun_watched_kind kinds[PL_EP_MAX];
    struct tun_watch *watches; /* owned */
    size_t watch_count;
    struct tun_guard guard;
    double before_ns, after_ns; /* by prediction, of the change to be verified */
    unsigned verify_left;       /* windows in which it may be; 0: nothing to verify */
    bool serving, pending, disagrees;
    bool returned;     /* the plan that serves is that of before, and everything is as it was */
    bool probing;      /* the change to be verified is a probe */
    bool told;         /* a decision was held by a guard; nothing is asked until that is over or a
                          level is another */
    unsigned events;   /* not yet decided */
    unsigned deferred; /* decided, but held by a guard */
    uint64_t probe_at_ns;
    unsigned probes;
};

/* adapt_kinds.c */
/** tun_kinds_start() - the first reading; frequencies are the table's. */
void tun_kinds_start(struct tun_adapt *a, const struct tun_kind_seen *seen);
/** tun_kinds_see() - a window's reading. Return: TUN_EVENT_HOTPLUG if core counts differ from what
 * was decided on, else 0. */
unsigned tun_kinds_see(struct tun_adapt *a, const struct tun_seen_window *w);
/** tun_kinds_clock_moved() - is a frequency another one than at the last decision. */
bool tun_kinds_clock_moved(const struct tun_adapt *a);
/** tun_kinds_cores_moved() - are there other cores than at the last decision. */
bool tun_kinds_cores_moved(const struct tun_adapt *a);
/** tun_kinds_same_clock() - are all frequencies those of @khz, as far as both are known. */
bool tun_kinds_same_clock(const struct tun_adapt *a, const double *khz);
void tun_kinds_learn(struct tun_adapt *a);

/* adapt_watch.c */
/** tun_watch_plan() - one watch for each group of the plan; the noise of the last plan's teams is
 * what is expected of these. Return: 0 or -ENOMEM. */
int tun_watch_plan(struct tun_adapt *a);
/** tun_watch_expect() - expected_ns at the present factors and frequencies. */
void tun_watch_expect(const struct tun_adapt *a, struct tun_watch *w);
/** tun_watch_see() - what the teams did in a window. */
void tun_watch_see(struct tun_adapt *a, const struct tun_seen_window *seen);
/** tun_watch_void() - other frames come in: every watch settles anew. */
void tun_watch_void(struct tun_adapt *a);
/** tun_watch_surprise() - log by which a settled plan may do otherwise than predicted. A plan that
 * returned has served so before: within what counts as free it tells nothing new. */
double tun_watch_surprise(const struct tun_adapt *a);
/** tun_waiting() - rise of the waiting share; NAN: unknown. */
double tun_waiting(const struct tun_watch *w);

/* adapt_ask.c */
/** tun_ask() - is there something to decide on. Return: TUN_ADAPT_DECIDE with the record, owned by
 * the caller, in @ret; TUN_ADAPT_NOTHING; -ENOMEM. */
int tun_ask(struct tun_adapt *a, struct tun_record *ret);

/* adapt_decided.c */
/** tun_decided_home() - the plan that serves is the one to return to when everything is as it is
 * now. */
void tun_decided_home(struct tun_adapt *a);
/** tun_decided_failed() - verifies a change, once in its life. Return: is its plan to be taken
 * back. */
bool tun_decided_failed(struct tun_adapt *a);

/* adapt_guard.c */
void tun_guard_start(struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_time() - Return: did the clock go back. */
bool tun_guard_time(struct tun_guard *g, const struct tun_adapt_options *o, uint64_t now_ns);
enum tun_why {
    TUN_WHY_KNOWN,  /* something is known to have happened */
    TUN_WHY_FELT,   /* the cause is known from measurements alone */
    TUN_WHY_FAILED, /* a plan was taken back */
    TUN_WHY_PROBE,  /* a probe, or its end: they have their own waiting times */
};
/** tun_guard_change() - @plan: that serves now; @before: until now. */
void tun_guard_change(struct tun_guard *g, const struct tun_adapt_options *o,
                      const struct pl_plan *before, const struct pl_plan *plan, enum tun_why why);
uint64_t tun_guard_cooldown_ns(const struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_hold_ns() - for so long what is felt has to stand: 0 until there were two back-offs.
 */
uint64_t tun_guard_hold_ns(const struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_urgent() - gain that does not wait for the cool-down; 0 from two back-offs on. */
double tun_guard_urgent(const struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_calm() - was the last change long ago, or none. */
bool tun_guard_calm(const struct tun_guard *g, const struct tun_adapt_options *o);
double tun_guard_left_s(const struct tun_guard *g, const struct tun_adapt_options *o);
