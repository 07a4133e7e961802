/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/decision_record.h - everything that a decision is made from, and the cost table that
 * it gives
 *
 * Plain data, complete: the same record gives the same decision anywhere. The daemon keeps records
 * in its history, and `pipesim replay` decides on them again.
 */
#pragma once

#include <math.h>

#include "tuner/problem.h"

#define TUN_CERTAIN 3.0 /* standard errors from 0 that make a level one to correct by */
#define TUN_FREE 0.15   /* log of a factor that is as good as 1 once interference has ended */

/* Things that happened, one bit each. */
enum {
    TUN_EVENT_HOTPLUG = 1, /* a core went or came (online list, EINVAL from pinning) */
    TUN_EVENT_CPUSET = 2,  /* the set of allowed cores changed */
    TUN_EVENT_POWER = 4,   /* the power source line moved */
    TUN_EVENT_BUTTON = 8, /* somebody asked by the retune line: cool-down and budget do not count */
    TUN_EVENT_INPUT = 16, /* rate or shape of the input changed: measurements are void */
    TUN_EVENT_PROBE = 32, /* an EP that nothing runs on is taken to be free again */
    TUN_EVENT_PARTS = 64, /* an EP was split, as a core of it is slower, or is joined again */
    /* changes of the machine since the last search, while nothing was watched */
    TUN_EVENT_GOVERNOR = 128,
    TUN_EVENT_FREQUENCY = 256, /* a limit */
    TUN_EVENT_THERMAL = 512,   /* a limit by heat */
    TUN_EVENT_COSTS = 1024,    /* costs were measured since the plan was chosen */
};

/* What is known of an EP at the moment of the decision. */
struct tun_ep_now {
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
    bool light;     /* on a contended EP and rarely busy: that it is faster does not mean that more
                       work would be */
};

/** tun_team_moved() - Return: it is slower or faster than expected, surely. */
static inline bool tun_team_moved(const struct tun_team_now *t)
{
    return t->firm || fabs(t->level) > TUN_CERTAIN * t->sigma;
}

/* What keeps all teams from their cores: shares of the last time, 0..1; 0: none, or unknown. */
struct tun_felt {
    double throttled; /* of the periods in which the quota of the cgroup was used up */
    double pressure;  /* of the time in which a task waited for a core (PSI) */
};

struct tun_record {
    struct tun_problem problem; /* owned: the table at khz_table, nothing else running, with the
                                   cores of the day it was made */
    struct pl_plan plan;        /* serving; eps are EPs of problem */
    struct pl_plan home;        /* that served when every factor was 1, at the present frequencies
                                   and cores; no stages: there is none */
    double *beta;               /* [unit_count], owned: 0..1 */
    double *slow; /* [ep_count][unit_count], owned: factors on costs known already, > 0 */
    struct tun_ep_now eps[PL_EP_MAX];
    size_t team_count;
    struct tun_team_now *teams; /* [team_count], owned */
    unsigned events;            /* TUN_EVENT_* */
    struct tun_felt felt;
    double measured_ns;     /* time per frame of the serving plan of late; 0: unknown, or frames
                               were missing */
    double gain_min;        /* relative */
    double gain_urgent;     /* relative; as much does not wait for the cool-down; 0: all waits */
    double cooldown_left_s; /* 0: over */
    double budget_left;     /* changes that may still be made this hour; < 1: none */
    bool search;            /* a search finds the plan, whatever the exact planner says of a gain */
};
#define TUN_RECORD_NULL ((struct tun_record){0})
void tun_record_deinit(struct tun_record *r);

/** tun_record_check() - checks that every figure is in its range and every team belongs to the
 * plan.
 * @ret_error: a sentence. Return: 0 or -EINVAL. */
int tun_record_check(const struct tun_record *r, char ret_error[TUN_ERROR_MAX]);

/* ---- the present cost table: frequencies, factors and cores of a record ---- */

/** tun_beta_default() - before two frequencies were seen: with i = 2 nkm / 4 (nk + km + nm), flops
 * a byte of the unit's matrices, i / (i + TUN_BETA_HALF); TUN_BETA_UNKNOWN without matrices. */
#define TUN_BETA_HALF 4.0
#define TUN_BETA_UNKNOWN 0.7
double tun_beta_default(const struct tun_unit *u);

#define TUN_CLOCK_STEP 0.03 /* relative: a smaller change of a frequency does not count */

/** tun_clock_factor() - (khz_table / khz) ^ beta; 1 when either is unknown. */
double tun_clock_factor(const struct tun_ep_now *k, double beta);

/** tun_clock_moved() - Return: both frequencies are known and differ by more than counts. */
static inline bool tun_clock_moved(double khz, double before_khz)
{
    return khz > 0 && before_khz > 0 && fabs(log(khz / before_khz)) > TUN_CLOCK_STEP;
}

/** tun_width_of() - Return: cores of a team of @plan that computes @unit on @ep; without one, of
 * the widest there; 1 without any. */
size_t tun_width_of(const struct pl_plan *plan, size_t ep, size_t unit);

/** tun_share_factor() - what a team of @to_width cores takes more where other programs run on them,
 * from @slow, of one of @from_width
 *
 * With f times as long on one core, a core is there 1 / f of the time, and all w cores that a team
 * needs at once are there 1 / f^w of it: slow ^ (to / from). What makes faster stays as it is. */
double tun_share_factor(double slow, size_t from_width, size_t to_width);

/** tun_correct() - the problem with @slow and the present frequencies and core counts in it
 * EPs without cores are left out; widths that the table has not are predicted (tun_fill()).
 * @shared: [ep_count of @r]: other programs make the EP slow (tun_share_factor()); NULL: none.
 * @ret_eps: [PL_EP_MAX]: EP of @r for each of @ret's. Return: 0; -EINVAL: no core left;
 * -ENOMEM.
 */
int tun_correct(const struct tun_record *r, const double *slow, const bool *shared,
                struct tun_problem *ret, size_t *ret_eps);
