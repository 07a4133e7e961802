/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/resume.h - a watch (tuner/adapt/adapt.h) that goes on under other options, on other
 * cores, or with other costs
 *
 * After a change of cores the watch begins anew on another problem. What was known of EPs whose
 * cores stay is given back to it, and the plan that serves is verified like one of its own.
 * Threads: as tuner/adapt/adapt.h.
 */
#pragma once

#include "tuner/adapt/adapt.h"

/** tun_adapt_set_options() - from now on; what was measured and decided stays. A plan that settles
 * goes on to settle. Return: 0, -EINVAL, -ENOMEM (then nothing changes). */
int tun_adapt_set_options(struct tun_adapt *a, const struct tun_adapt_options *o);

/** tun_adapt_slow() - factor on a unit's cost that is known now; 1 where nothing is served.
 * @ret_contended: it is an EP whose factors are above 1 because of contention. */
double tun_adapt_slow(const struct tun_adapt *a, size_t ep, size_t unit, bool *ret_contended);

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
