/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/decided.h - what became of a decision that the watch (tuner/adapt/adapt.h) asked for
 *
 * Threads: as tuner/adapt/adapt.h.
 */
#pragma once

#include "tuner/adapt/decide.h"
#include "tuner/adapt/turns.h"

struct tun_adapt;

/** tun_adapt_decided() - @d: of @r; NULL: it failed. @switched: decision.plan serves now. Return: 0
 * or -ENOMEM (then nothing is watched until tun_adapt_serve()).
 *
 * After a search (d->search), call tun_decision_searched() first. */
int tun_adapt_decided(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d,
                      bool switched, uint64_t now_ns);

/** tun_decision_searched() - what a search for @d found. @plan: serves now; @replan: it is another
 * than before. @before_ns, @after_ns: bottlenecks of both as the search measured them. */
void tun_decision_searched(struct tun_decision *d, const struct pl_plan *plan, bool replan,
                           double before_ns, double after_ns);
/** tun_adapt_proved() - after tun_adapt_decided(): the plan of @d was tried in turns
 * (tuner/adapt/turns.h), so it is not verified again. A plan that was worse is remembered
 * (tuner/adapt/turns.h). */
void tun_adapt_proved(struct tun_adapt *a, const struct tun_record *r, const struct tun_decision *d,
                      enum tun_verdict verdict);
/** tun_decision_returns() - Return: the plan of @d served before what the serving one is for, and
 * that is over; see struct tun_turns_options. */
bool tun_decision_returns(const struct tun_record *r, const struct tun_decision *d);
/** tun_adapt_lost() - Return: the plan of @d was not better than the serving one in turns, on a
 * machine like that of @r. What is a probe, or
 * returns, is always tried. */
bool tun_adapt_lost(const struct tun_adapt *a, const struct tun_record *r,
                    const struct tun_decision *d);

/** tun_adapt_before() - the plan to return to after TUN_ADAPT_BACK; borrowed. */
const struct pl_plan *tun_adapt_before(const struct tun_adapt *a);
/** tun_adapt_went_back() - as tun_adapt_decided(). */
int tun_adapt_went_back(struct tun_adapt *a, bool switched, uint64_t now_ns);
