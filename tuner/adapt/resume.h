/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt_resume.h - a watch (tuner/adapt.h) that goes on under other options, or on other
 * cores
 *
 * After a change of cores the watch begins anew on another problem. What was known of kinds whose
 * cores stay is given back to it, and the plan that serves is verified like one of its own.
 * Threads: as tuner/adapt.h.
 */
#pragma once

#include "tuner/adapt.h"

/** tun_adapt_set_options() - from now on; what was measured and decided stays. A plan that settles
 * goes on to settle. Return: 0, -EINVAL, -ENOMEM (then nothing changes). */
int tun_adapt_set_options(struct tun_adapt *a, const struct tun_adapt_options *o);

/** tun_adapt_slow() - factor on a unit's cost that is known now; 1 where nothing is served.
 * @ret_contended: it is a kind whose factors are above 1 because of contention. */
double tun_adapt_slow(const struct tun_adapt *a, size_t kind, size_t unit, bool *ret_contended);

/** tun_adapt_resume() - after tun_adapt_serve(): factors that are known already
 * @slow: [kind_count][unit_count], > 0 @contended: [kind_count]; both copied. */
void tun_adapt_resume(struct tun_adapt *a, const double *slow, const bool *contended);

/** tun_adapt_doubt() - after tun_adapt_serve(): the plan that serves is measured and asked to be
 * taken back (TUN_ADAPT_BACK) like one that was decided on
 * @before: to return to @before_ns, @after_ns: bottlenecks of both by prediction. Return: 0 or
 * -EINVAL. */
int tun_adapt_doubt(struct tun_adapt *a, const struct pl_plan *before, double before_ns,
                    double after_ns);
