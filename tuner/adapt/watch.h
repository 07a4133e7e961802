/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/watch.h - one watch for each group of teams: expected and measured times */
#pragma once

#include "tuner/adapt/adapt_state.h"
#include "tuner/adapt/adapt_window.h"

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
