/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/guard.h - what holds a change back: cool-down, back-off and budget, see adapt.h */
#pragma once

#include "pipeline/plan.h"
#include "tuner/adapt/adapt_options.h"

#define TUN_PAST 4u /* plans remembered for the back-off */

struct tun_guard {
    uint64_t changed_ns; /* of the last change; guards count from here */
    uint64_t clock_ns;   /* newest time seen */
    double bucket;
    uint64_t filled_ns;
    unsigned backoff, hasty;       /* hasty: felt changes in a row that were not calm */
    bool changed;                  /* ever */
    struct pl_plan past[TUN_PAST]; /* newest first */
    size_t past_count;
};

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
/** tun_guard_lost() - a plan was not better in turns: it is waited before the next one, a little
 * longer than after a change. */
void tun_guard_lost(struct tun_guard *g);
/** tun_guard_rest() - the cool-down begins. */
void tun_guard_rest(struct tun_guard *g);
uint64_t tun_guard_cooldown_ns(const struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_hold_ns() - for so long what is felt has to stand: 0 until there were two back-offs.
 */
uint64_t tun_guard_hold_ns(const struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_urgent() - gain that does not wait for the cool-down; 0 from two back-offs on. */
double tun_guard_urgent(const struct tun_guard *g, const struct tun_adapt_options *o);
/** tun_guard_calm() - Return: the last change was long ago, or there was none. */
bool tun_guard_calm(const struct tun_guard *g, const struct tun_adapt_options *o);
double tun_guard_left_s(const struct tun_guard *g, const struct tun_adapt_options *o);
