/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/adapt_state.h - the state of a watch
 *
 * ep_state.c keeps the EPs' clocks, watch.c the teams' levels, ask.c says when to decide, decided.c
 * takes over what was decided, guard.c holds changes back. adapt.c is the interface.
 */
#pragma once

#include "tuner/adapt/adapt_options.h"
#include "tuner/adapt/guard.h"
#include "tuner/adapt/turns.h"

#define READINGS 5u        /* of a frequency; their median counts */
#define WAITS 3u           /* windows whose median is the waiting share */
#define LATE 0.3           /* share of the newest window in what is felt of the machine */
#define SLOWED 1.05        /* a factor that is worth a probe */
#define VERIFY_WINDOWS 40u /* after which a plan that is not busy is not verified */
/* Events that no guard holds back; everything else waits for the guards after it was told once. */
#define AT_ONCE                                                                                    \
    (TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET | TUN_EVENT_POWER | TUN_EVENT_BUTTON | TUN_EVENT_PARTS | \
     TUN_EVENT_GOVERNOR | TUN_EVENT_FREQUENCY | TUN_EVENT_THERMAL | TUN_EVENT_COSTS)

struct tun_watched_ep {
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
    uint16_t ep, width, count;
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

struct tun_adapt {
    struct tun_adapt_options options;
    struct tun_problem problem; /* owned */
    double *beta, *slow;        /* owned */
    double *slow_before;        /* owned: factors before a probe */
    size_t beta_count;
    struct pl_plan plan, before;
    struct pl_plan home; /* served last while every factor was 1 */
    double home_khz[PL_EP_MAX];
    struct tun_felt felt; /* of late */
    struct tun_watched_ep eps[PL_EP_MAX];
    struct tun_watch *watches; /* owned */
    size_t watch_count;
    struct tun_guard guard;
    struct tun_lost lost;
    double before_ns, after_ns; /* by prediction, of the change to be verified */
    unsigned verify_left;       /* windows in which it may be; 0: nothing to verify */
    bool serving, pending, disagrees;
    bool returned;     /* the previous plan serves again, and everything is as it was */
    bool probing;      /* the change to be verified is a probe */
    bool told;         /* a guard held a decision; nothing is asked until the guard lets go or a
                          level changes */
    unsigned events;   /* not yet decided */
    unsigned deferred; /* decided, but held by a guard */
    uint64_t probe_at_ns;
    unsigned probes;
    uint64_t hold_ns; /* of the newest window */
};

/* ---- ask.c ---- */

/** tun_ask() - looks for something to decide on. Return: TUN_ASK_DECIDE with the record, owned by
 * the caller, in @ret; 0: nothing; -ENOMEM. */
enum { TUN_ASK_DECIDE = 1 };
int tun_ask(struct tun_adapt *a, struct tun_record *ret);

/* ---- decided.c ---- */

/** tun_decided_home() - the plan that serves is the one to return to when everything is as it is
 * now. */
void tun_decided_home(struct tun_adapt *a);
/** tun_decided_failed() - verifies a change, once in its life. Return: its plan is to be taken
 * back. */
bool tun_decided_failed(struct tun_adapt *a);

/* ---- ep_state.c ---- */

/** tun_eps_start() - the first reading; frequencies are the table's. */
void tun_eps_start(struct tun_adapt *a, const struct tun_ep_seen *seen);
/** tun_eps_see() - a window's reading. Return: TUN_EVENT_HOTPLUG if core counts differ from what
 * was decided on, else 0. */
unsigned tun_eps_see(struct tun_adapt *a, const struct tun_seen_window *w);
/** tun_eps_clock_moved() - Return: a frequency changed since the last decision. */
bool tun_eps_clock_moved(const struct tun_adapt *a);
/** tun_eps_cores_moved() - Return: the cores changed since the last decision. */
bool tun_eps_cores_moved(const struct tun_adapt *a);
/** tun_eps_same_clock() - Return: all frequencies are those of @khz, as far as both are known. */
bool tun_eps_same_clock(const struct tun_adapt *a, const double *khz);
/** tun_eps_slow() - Return: the largest factor on a unit's cost; at least 1. */
double tun_eps_slow(const struct tun_adapt *a, size_t ep);
/** tun_eps_note_slowed() - which EPs are slowed. @felt: by other programs; else an EP stays
 * contended if it was. */
void tun_eps_note_slowed(struct tun_adapt *a, bool felt);
/** tun_eps_learn() - after tun_watch_see(): betas, from what a change of frequency did to the
 * teams. */
void tun_eps_learn(struct tun_adapt *a);

/* ---- watch.c ---- */

/** tun_watch_plan() - one watch for each group of the plan; the noise of the last plan's teams is
 * what is expected of these. Return: 0 or -ENOMEM. */
int tun_watch_plan(struct tun_adapt *a);
/** tun_watch_expect() - expected_ns at the present factors and frequencies. */
void tun_watch_expect(const struct tun_adapt *a, struct tun_watch *w);
/** tun_watch_renew() - the same after these changed: what the team showed stays, its level
 * moves. */
void tun_watch_renew(const struct tun_adapt *a, struct tun_watch *w);
/** tun_watch_see() - what the teams did in a window. */
void tun_watch_see(struct tun_adapt *a, const struct tun_seen_window *seen);
/** tun_watch_void() - other frames come in: every watch settles anew. */
void tun_watch_void(struct tun_adapt *a);
/** tun_watch_surprise() - log by which a settled plan may do otherwise than predicted. A plan that
 * returned has served so before: within what counts as free it tells nothing new. */
double tun_watch_surprise(const struct tun_adapt *a);
/** tun_waiting() - rise of the waiting share; NAN: unknown. */
double tun_waiting(const struct tun_watch *w);
