/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/decide.h - one decision: what has changed, what the cost table is now, does a new plan pay
 *
 * A pure function of a record: the same record gives the same decision, on the daemon's machine and
 * in `pipesim replay`. Attribution comes first, in this order:
 *
 * - cores came or went (events or counts): the problem has other cores; cause hotplug or cpuset.
 *   Where the serving plan does not fit any more, no guard holds the new one back;
 * - a kind's frequency is another than at the last decision; every cost of every kind is the
 * table's times (khz_table / khz_now) ^ beta_u with beta_u the unit's compute-boundness, 1: all
 * arithmetic, 0: all memory (the part that scales with the clock in a power law; between two known
 * points exact). No exploring. Cause thermal where a thermal limit stands or stood, else governor
 * where that changed, else frequency;
 * - teams differ from what is expected at the present frequency by their level: the kind's costs
 *   are multiplied by exp(level) where the kind's teams agree, else each team's own units on that
 *   kind. Cause contention where the time was spent waiting (CPU clocks) or was before, or where
 *   the cgroup's quota was used up or, without CPU clocks, tasks waited for cores; thermal where a
 *   limit stands and the time was spent working, else throughput.
 *
 * A kind that was slowed and whose teams, now faster, are within TUN_FREE of a factor of 1 is free
 * again: all its factors are 1, those of units that it does not run now as well. A light team of a
 * contended kind gets its share of the core whatever else runs there: that it is faster lowers no
 * factor, and where it is as fast as when the kind is free, the release is tentative. Once every
 * kind is within TUN_FREE, all are 1, and the plan that served before (home) is taken unless the
 * best one gains TUN_HOME over it, or it is slower than the serving one by more than TUN_AS_GOOD:
 * what has been seen to serve well is worth more than a prediction.
 *
 * The exact planner solves the corrected problem; the gain of its plan over the serving one, both
 * by that problem, has to reach gain_min (home: -TUN_AS_GOOD), also with every level one standard
 * error nearer to 0. Equal plans gain nothing.
 *
 * Pure; any thread; allocates; takes as long as tun_solve().
 */
#pragma once

#include "tuner/adapt/detect.h"
#include "tuner/solve.h"

#define TUN_FREE 0.15 /* log of a factor that is as good as 1 where something foreign has ended */
#define TUN_HOME 0.25 /* gain over the plan of before that is more than an error of the table */
#define TUN_AS_GOOD 0.08 /* relative: what the table says of two plans is off by as much */

/* As `pipectl history` names them. */
enum tun_cause {
    TUN_CAUSE_NONE,
    TUN_CAUSE_GOVERNOR,
    TUN_CAUSE_FREQUENCY,
    TUN_CAUSE_THERMAL,
    TUN_CAUSE_CONTENTION,
    TUN_CAUSE_HOTPLUG,
    TUN_CAUSE_CPUSET,
    TUN_CAUSE_THROUGHPUT,
    TUN_CAUSE_GPIO,
    TUN_CAUSE_COUNT
};
/** tun_cause_name() - "contention"; "none" for TUN_CAUSE_NONE and what is no cause. */
const char *tun_cause_name(enum tun_cause cause);

/* Things that happened, one bit each. */
enum {
    TUN_EVENT_HOTPLUG = 1, /* a core went or came (uevent, online list, EINVAL from pinning) */
    TUN_EVENT_CPUSET = 2,  /* the set of allowed cores changed */
    TUN_EVENT_POWER = 4,   /* the power source line moved */
    TUN_EVENT_BUTTON = 8, /* somebody asked by the retune line: cool-down and budget do not count */
    TUN_EVENT_INPUT = 16, /* rate or shape of what comes in changed: what was measured is void */
    TUN_EVENT_PROBE = 32, /* a kind that nothing runs on is taken to be free again */
};

/* What is known of a kind of core at the moment of the decision. */
struct tun_kind_now {
    uint16_t cores;                       /* there and allowed, 0: none */
    double khz_table, khz;                /* the table's figures are for, and now; 0: unknown */
    double khz_before;                    /* at the last decision; 0: unknown */
    bool governor_changed, limit_changed; /* of late */
    bool thermal;                         /* a limit by heat stands, or did of late */
    bool contended;                       /* its factors are above 1 because of contention */
};

/* What was measured of one group of teams of the serving plan. */
struct tun_team_now {
    uint16_t stage, group;
    double level;   /* log(measured / expected at the present frequency) */
    double sigma;   /* standard error of level */
    double waiting; /* share of service time not spent on the CPU, rise since the plan was new,
                       -1..1; NAN: unknown */
    bool firm;      /* its detector says so */
    bool light;     /* on a contended kind, and busy for less than what is left of that: that it is
                       faster does not say that more work would be */
};

enum tun_hold {
    TUN_HOLD_NONE,
    TUN_HOLD_SAME,     /* the best plan is the serving one */
    TUN_HOLD_GAIN,     /* it gains less than gain_min */
    TUN_HOLD_COOLDOWN, /* too soon after the last change */
    TUN_HOLD_BUDGET,   /* too many in the last hour */
    TUN_HOLD_BOUNDS,   /* no plan, or none that keeps the bounds and is better */
    TUN_HOLD_COUNT
};
/** tun_hold_name() - "cooldown". */
const char *tun_hold_name(enum tun_hold hold);

struct tun_record {
    struct tun_problem problem; /* owned: the table at khz_table, nothing else running, with the
                                   cores of the day it was made */
    struct pl_plan plan;        /* serving; eps are kinds of problem */
    struct pl_plan home;        /* that served when every factor was 1, at the present frequencies
                                   and cores; no stages: there is none */
    double *beta;               /* [unit_count], owned: 0..1 */
    double *slow; /* [kind_count][unit_count], owned: factors on costs known already, > 0 */
    struct tun_kind_now kinds[PL_EP_MAX];
    size_t team_count;
    struct tun_team_now *teams; /* [team_count], owned */
    unsigned events;            /* TUN_EVENT_* */
    double throttled;           /* share of the last periods in which the quota of the cgroup was
                                   used up, 0..1; 0: none, or unknown */
    double pressure;            /* share of the time in which a task waited for a core (PSI), 0..1;
                                   0: none, or unknown */
    double gain_min;            /* relative */
    double gain_urgent;     /* relative; as much does not wait for the cool-down; 0: all waits */
    double cooldown_left_s; /* 0: over */
    double budget_left;     /* changes that may still be made this hour; < 1: none */
};
#define TUN_RECORD_NULL ((struct tun_record){0})
void tun_record_deinit(struct tun_record *r);

/** tun_record_check() - is every figure in its range, does every team belong to the plan.
 * @ret_error: a sentence. Return: 0 or -EINVAL. */
int tun_record_check(const struct tun_record *r, char ret_error[TUN_ERROR_MAX]);

struct tun_decision {
    bool replan;
    bool must;          /* the serving plan does not fit the cores any more */
    enum tun_hold hold; /* why not, if not */
    enum tun_cause cause;
    bool quota;                   /* contention by the cgroup's quota, not by another program */
    bool tentative;               /* released by what light teams show: to be verified */
    bool released;                /* a kind that was slowed is free again: its factors are 1 */
    size_t kind;                  /* that the cause is about; SIZE_MAX: several or none */
    struct pl_plan plan;          /* if replan; eps are kinds of the record's problem */
    double before_ns, after_ns;   /* bottleneck of both by the corrected problem; before INFINITY if
                                     it does not fit; 0 if not solved for */
    double gain;                  /* in what the objective asks for; INFINITY if it must */
    double factor[PL_EP_MAX];     /* on the kind's costs by this decision: frequency and level */
    double *slow;                 /* [kind_count][unit_count], owned: factors from now on */
    struct tun_problem corrected; /* owned: what was solved, kinds as in @kinds_left */
    size_t kinds_left[PL_EP_MAX]; /* kind of the record's problem for each of corrected's */
};
#define TUN_DECISION_NULL ((struct tun_decision){0})
void tun_decision_deinit(struct tun_decision *d);

/** tun_decide() - @r: passes tun_record_check(). Return: 0 with *ret; -EINVAL; -ENOMEM. */
int tun_decide(const struct tun_record *r, struct tun_decision *ret);

/** tun_decision_same() - do two say the same: verdict, cause, plan, and gain to 1e-6. */
bool tun_decision_same(const struct tun_decision *a, const struct tun_decision *b);

/** tun_beta_default() - before two frequencies were seen: with i = 2 nkm / 4 (nk + km + nm), flops
 * a byte of the unit's matrices, i / (i + TUN_BETA_HALF); TUN_BETA_UNKNOWN without matrices. */
#define TUN_BETA_HALF 4.0
#define TUN_BETA_UNKNOWN 0.7
double tun_beta_default(const struct tun_unit *u);

/** tun_clock_factor() - (khz_table / khz) ^ beta; 1 when either is unknown. */
double tun_clock_factor(const struct tun_kind_now *k, double beta);

/** tun_correct() - the problem with @slow and the present frequencies and core counts in it
 * Kinds without cores are left out; widths that the table has not are predicted (tun_fill()).
 * @ret_kinds: [PL_EP_MAX]: kind of @r for each of @ret's. Return: 0; -EINVAL: no core left;
 * -ENOMEM.
 */
int tun_correct(const struct tun_record *r, const double *slow, struct tun_problem *ret,
                size_t *ret_kinds);
