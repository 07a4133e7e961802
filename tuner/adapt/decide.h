/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/decide.h - one decision: what has changed, what the cost table is now, does a new
 * plan pay
 *
 * A pure function of a record: the same record gives the same decision, on the daemon's machine and
 * in `pipesim replay`. Attribution comes first, in this order:
 *
 * - cores came or went (events or counts): the problem has other cores; cause hotplug or cpuset.
 *   Where the serving plan does not fit any more, no guard holds the new one back;
 * - an EP's frequency differs from the last decision's: each cost is the table's times
 *   (khz_table / khz_now) ^ beta_u, with beta_u the unit's compute-boundness (1: all arithmetic,
 *   0: all memory; a power law, exact between two known points). Nothing is explored. Cause thermal
 *   where a thermal limit stands or stood, else governor where that changed, else frequency;
 * - teams differ from what is expected at the present frequency by their level: the EP's costs
 *   are multiplied by exp(level) where the EP's teams agree, else each team's own units on that
 *   EP. Cause contention where the time was spent waiting (CPU clocks) or was before, or where
 *   the cgroup's quota was used up or, without CPU clocks, tasks waited for cores; thermal where a
 *   limit stands and the time was spent working, else throughput. Of both a wider team suffers
 *   more (tun_share_factor()).
 *
 * An EP that was slowed and whose teams, now faster, are within TUN_FREE of a factor of 1 is free
 * again: all its factors are 1, those of units that it does not run now as well. A light team of a
 * contended EP gets its share of the core whatever else runs there: that it is faster lowers no
 * factor, and where it is as fast as when the EP is free, the release is tentative. Once every
 * EP is within TUN_FREE, all are 1. Home, the plan that served then, is taken unless the best plan
 * gains TUN_HOME over it, or it is slower than the serving plan by more than TUN_AS_GOOD: a plan
 * that has served well is worth more than a prediction.
 *
 * The exact planner solves the corrected problem; the gain of its plan over the serving one, both
 * by that problem, has to reach gain_min (home: -TUN_AS_GOOD), also with every level one standard
 * error nearer to 0. Equal plans gain nothing. Where only the table has changed (TUN_EVENT_COSTS)
 * it has to reach TUN_HOME. Then, and for a cause that only measurements show, the serving plan as
 * it was measured must be slower than the bound (tuner/solve/solve.h) by gain_min; and for the
 * parts of an EP (TUN_EVENT_PARTS) it counts as measured where that is slower than the table says,
 * since teams of unequal speed that share frames keep their order. What is predicted for the new
 * plan may be off: there the gain has to reach TUN_PARTS, too.
 *
 * Where the record asks for a search, the change itself is the reason for one: neither a small gain
 * nor an equal plan holds it back, only the guards do. The exact planner's plan is taken only where
 * the serving one does not fit any more.
 *
 * Pure; any thread; allocates; takes as long as tun_solve().
 */
#pragma once

#include "tuner/adapt/decision_record.h"

#define TUN_HOME 0.25    /* gain over home that is more than an error of the table */
#define TUN_PARTS 0.05   /* gain of a plan on the parts of an EP that is worth a trial */
#define TUN_AS_GOOD 0.08 /* relative: what the table says of two plans is off by as much */

/* What made a decision due: as `pipectl history` names them. */
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
    TUN_CAUSE_MEASURED, /* costs, so that another plan may be clearly better */
    TUN_CAUSE_COUNT
};
/** tun_cause_name() - "contention"; "none" for TUN_CAUSE_NONE and what is no cause. */
const char *tun_cause_name(enum tun_cause cause);

/** tun_cause_felt() - Return: the cause is known from measured times alone. */
bool tun_cause_felt(enum tun_cause cause);

/** tun_attribute() - what changed
 * @ret_ep: that it is about; SIZE_MAX: several or none
 * @ret_quota: set where the cgroup's quota made the contention */
enum tun_cause tun_attribute(const struct tun_record *r, size_t *ret_ep, bool *ret_quota);

/** tun_levels_correct() - multiplies factors by what the levels say
 * @errors: standard errors by which every level is taken nearer to 0.
 * @slow: [ep_count][unit_count]. @ret_levels: [PL_EP_MAX]: the EPs' mean levels, 0 where
 * nothing moved. */
void tun_levels_correct(const struct tun_record *r, double errors, double *slow,
                        double *ret_levels);
/** tun_levels_release() - sets EPs free on which interference has ended, see tuner/adapt/decide.h.
 * @ret_tentative: only light teams show it. Return: there was one. */
bool tun_levels_release(const struct tun_record *r, double *slow, bool *ret_tentative);
/** tun_most_slowed() - |log| of the EP's factor that is farthest from 1. */
double tun_most_slowed(const struct tun_record *r, const double *slow, size_t ep);

enum tun_hold {
    TUN_HOLD_NONE,
    TUN_HOLD_SAME,     /* the best plan is the serving one */
    TUN_HOLD_GAIN,     /* it gains less than gain_min */
    TUN_HOLD_COOLDOWN, /* too soon after the last change */
    TUN_HOLD_BUDGET,   /* too many in the last hour */
    TUN_HOLD_BOUNDS,   /* no plan, or none that keeps the bounds and is better */
    TUN_HOLD_LOST,     /* it was not better in turns (tuner/adapt/turns.h), now or on a machine like
                          this one */
    TUN_HOLD_TOGETHER, /* several models are planned together; tun_decide() does not say it */
    TUN_HOLD_COUNT
};
extern const char *const tun_hold_names[TUN_HOLD_COUNT]; /* by enum tun_hold; "cooldown" */

struct tun_decision {
    bool replan;
    bool must;          /* the serving plan does not fit the cores any more */
    bool search;        /* if replan: a search on `corrected` finds the plan; `plan` is a guess */
    enum tun_hold hold; /* why not, if not */
    enum tun_cause cause;
    bool quota;                 /* contention by the cgroup's quota, not by another program */
    bool tentative;             /* released by what light teams show: to be verified */
    bool released;              /* an EP that was slowed is free again: its factors are 1 */
    size_t ep;                  /* that the cause is about; SIZE_MAX: several or none */
    struct pl_plan plan;        /* if replan; eps are EPs of the record's problem */
    double before_ns, after_ns; /* bottleneck of both by the corrected problem; before INFINITY if
                                     it does not fit; 0 if not solved for */
    double gain;                /* in what the objective asks for; INFINITY if it must */
    double factor[PL_EP_MAX];   /* on the EP's costs by this decision: frequency and level */
    double *slow; /* [ep_count][unit_count], owned: factors from now on, of the serving plan */
    bool shared[PL_EP_MAX];       /* other programs are why, as far as can be told */
    struct tun_problem corrected; /* owned: what was solved, EPs as in @eps_left */
    size_t eps_left[PL_EP_MAX];   /* EP of the record's problem for each of corrected's */
};
#define TUN_DECISION_NULL ((struct tun_decision){0})
void tun_decision_deinit(struct tun_decision *d);

/** tun_decide() - @r: passes tun_record_check(). Return: 0 with *ret; -EINVAL; -ENOMEM. */
int tun_decide(const struct tun_record *r, struct tun_decision *ret);

/** tun_decision_same() - Return: both say the same: verdict, cause, plan, and gain to 1e-6. */
bool tun_decision_same(const struct tun_decision *a, const struct tun_decision *b);
