/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/ep_state.h - what the governor reports of the EPs, and what their units do when the
 * clock changes */
#pragma once

#include "tuner/adapt/adapt_state.h"
#include "tuner/adapt/adapt_window.h"

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
/** tun_eps_learn() - after tun_watch_see(): betas, from what a change of frequency did to the
 * teams. */
void tun_eps_learn(struct tun_adapt *a);
