/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/adapt.h - watches a serving plan, says when to decide, and holds changes back
 *
 *     tun_adapt_new(&options, &a);
 *     tun_adapt_serve(a, &problem, &plan, eps, now);         a plan serves, with its cost table
 *     every window:
 *         switch (tun_adapt_observe(a, &window, &record)) {
 *         case TUN_ADAPT_DECIDE: tun_decide(&record, &decision);       any thread, milliseconds
 *             ...switch to decision.plan if decision.replan...
 *             tun_adapt_decided(a, &record, &decision, switched, now); break;
 *         case TUN_ADAPT_BACK: ...switch to *tun_adapt_before(a)...
 *             tun_adapt_went_back(a, switched, now); break;
 *         }
 *
 * Every group of teams of the plan has a detector (tuner/adapt/detect.h) on log(measured /
 * expected) service time, expected at the present frequency. A decision is due when
 *
 * - cores came or went, or a line asks;
 * - a frequency changed by 3 % (the median of five readings);
 * - a detector is firm;
 * - a settled plan differs from its prediction by more than verify_margin (TUN_FREE for a previous
 *   plan that returned).
 *
 * A team that was starved in a window, or had no frame, gives no sample; nor do the first windows
 * of a plan.
 *
 * Guards. Two changes are at least a cool-down apart. It doubles for every A-B-A-B, for every third
 * change in a row whose cause is known from measurements alone (both only where changes are less
 * than TUN_CALM cool-downs apart), and for every plan that was taken back. A calm change halves it.
 *
 * Until it has doubled twice, a plan that gains gain_urgent does not wait: one plan taken back is
 * not a pattern. From then on measurements alone lead to a decision only if they hold for as long
 * as the cool-down, without a break. What comes and goes faster is tolerated. A slowdown always has
 * to hold for as long as the caller says of each window: as a proof takes. Changes also come from a
 * bucket of `hourly` that refills over an hour. Neither guard holds back the button, nor a new plan
 * where the old one no longer fits.
 *
 * After a change the first window is left out and `settle` windows are measured. The previous plan
 * returns if the bottleneck is worse than predicted by more than verify_margin and worse than what
 * the previous plan would do. A level that led to no change becomes the expected level, but counts
 * in the next decision: drifts add up.
 *
 * Probes. A contended EP on which only light teams run can look free while it is not: a quota or a
 * scheduler lets a little work pass. When such a team gets as fast as on a free EP, or is so from
 * the start and probe_ns have passed, that is tried as a probe.
 *
 * Nobody sees an EP recover on which nothing runs any more. So after probe_ns it is taken to be
 * free (TUN_EVENT_PROBE), and twice as late each time. A failed probe restores the factors of
 * before.
 *
 * Home of the record is the plan to return to: the last one that served while no factor was above 1
 * by more than an error of the table (8 %).
 *
 * beta of units is learned: when an EP's frequency changes by 10 % and its teams then differ by x
 * from what beta says, beta moves by half of x / log(khz_before / khz_now), within 0..1.
 *
 * Time is an argument and may jump. No threads, files or clocks; one thread at a time.
 */
#pragma once

#include "tuner/adapt/adapt_options.h"
#include "tuner/adapt/decide.h"

struct tun_adapt; /* opaque */

/** tun_adapt_new() - @o: NULL: defaults. Return: 0, -EINVAL (options), -ENOMEM. */
int tun_adapt_new(const struct tun_adapt_options *o, struct tun_adapt **ret);
struct tun_adapt *tun_adapt_free(struct tun_adapt *a);

/**
 * tun_adapt_serve() - a plan from outside serves: at the start, after a request or a search
 * @p: copied; every cost known, for the frequencies in @eps and nothing else running. Factors and
 * levels begin anew, the guards and learned betas (of an equal number of units) stay.
 * Return: 0, -EINVAL, -ENOMEM (then nothing is watched).
 */
int tun_adapt_serve(struct tun_adapt *a, const struct tun_problem *p, const struct pl_plan *plan,
                    const struct tun_ep_seen *eps, uint64_t now_ns);

enum tun_adapt_asks { TUN_ADAPT_NOTHING, TUN_ADAPT_DECIDE, TUN_ADAPT_BACK };
/**
 * tun_adapt_observe() - one window
 * @ret: set with TUN_ADAPT_DECIDE, owned by the caller (tun_record_deinit); until
 * tun_adapt_decided() nothing else is asked. Return: enum tun_adapt_asks, or -ENOMEM (ask again in
 * the next window). Does not solve: microseconds.
 */
int tun_adapt_observe(struct tun_adapt *a, const struct tun_seen_window *w, struct tun_record *ret);

/* What can be told about one group of teams. */
struct tun_watch_view {
    uint16_t stage, group;
    double expected_ns, level, sigma;
    enum tun_change change;
    bool firm, settled;
    uint64_t since_ns; /* of a change */
};
/** tun_adapt_watch() - @index: 0..; Return: false past the last one. */
bool tun_adapt_watch(const struct tun_adapt *a, size_t index, struct tun_watch_view *ret);
/** tun_adapt_verifying() - Return: a change of plan is still to be verified. */
bool tun_adapt_verifying(const struct tun_adapt *a);
/** tun_adapt_cooldown_ns() - the present one, back-off included. */
uint64_t tun_adapt_cooldown_ns(const struct tun_adapt *a);

/* ---- a watch that goes on under other options, on other cores, or with other costs ----
 *
 * After a change of cores the watch begins anew on another problem. What was known of EPs whose
 * cores stay is given back to it, and the plan that serves is verified like one of its own. */

/** tun_adapt_set_options() - from now on; what was measured and decided stays. A plan that settles
 * goes on to settle. Return: 0, or -EINVAL (then nothing changes). */
int tun_adapt_set_options(struct tun_adapt *a, const struct tun_adapt_options *o);

/** tun_adapt_slow() - factor on a unit's cost that is known now; 1 where nothing is served.
 * @ret_contended: it is an EP whose factors are above 1 because of contention. */
double tun_adapt_slow(const struct tun_adapt *a, size_t ep, size_t unit, bool *ret_contended);

/** tun_adapt_costs() - the table with what is known now of slowdown and frequencies. @ret: owned if
 * 1. Return: 1; 0: nothing is served, or nothing is slowed or at another frequency than then;
 * -ENOMEM. */
int tun_adapt_costs(const struct tun_adapt *a, struct tun_problem *ret);

/** tun_adapt_resume() - after tun_adapt_serve(): factors that are known already
 * @slow: [ep_count][unit_count], > 0 @contended: [ep_count]; both copied. */
void tun_adapt_resume(struct tun_adapt *a, const double *slow, const bool *contended);

/**
 * tun_adapt_learned() - costs that were measured since the plan serves replace those of its table
 * What is expected of teams changes, what they showed does not. @p: as for tun_adapt_serve(), of
 * the same EPs and units. Return: 0; -EINVAL: of others, a frequency is not the table's, or an EP
 * is slowed; -ENOMEM. Then nothing changes.
 */
int tun_adapt_learned(struct tun_adapt *a, const struct tun_problem *p);

/** tun_adapt_changed() - another plan was tried that the watch did not ask for, whether or not it
 * serves now: the cool-down begins. */
void tun_adapt_changed(struct tun_adapt *a, uint64_t now_ns);

/** tun_adapt_verify() - after tun_adapt_serve(): verify the serving plan like a decision's
 * @before: the plan to return to (TUN_ADAPT_BACK)
 * @before_ns, @after_ns: predicted bottlenecks of both
 * Return: 0 or -EINVAL. */
int tun_adapt_verify(struct tun_adapt *a, const struct pl_plan *before, double before_ns,
                     double after_ns);
