/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/at_once.h - how much less of a unit's time a frame needs in a team that takes several
 *
 * f(n) is the time a frame of n frames at once relative to the time of one frame alone. Units that
 * read their weights from memory once for all n frames have f(n) < 1; all others have 1. It is
 * known for 2, 4 and 8 frames. Between them the time of all n frames, t(n) = n f(n), is a line:
 *     t(n) = t(a) + (n - a) (t(b) - t(a)) / (b - a)    for a <= n <= b, both of 1, 2, 4, 8
 * More frames never take less time in all, and never more time each: f(2a) is in [f(a) / 2, f(a)].
 *
 * Plain data and pure functions; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define TUN_AT_ONCE 3u         /* figures: for 2, 4 and 8 frames */
#define TUN_AT_ONCE_LEAST 0.02 /* a unit gains if 8 frames save this share of its time */

struct tun_at_once {            /* of one unit on one EP, whatever the width */
    double factor[TUN_AT_ONCE]; /* in (0, 1] after tun_at_once_settle(); 0: unknown, counts as 1 */
    bool measured;              /* on live frames, not only at load */
};

/** tun_at_once_factor() - Return: f(@frames), @frames >= 1; above 8 as for 8.
 * @a: NULL: 1 */
double tun_at_once_factor(const struct tun_at_once *a, double frames);
/** tun_at_once_settle() - moves the figures into their ranges above. Replaces a figure that is not
 * a positive number by the one before it. */
void tun_at_once_settle(struct tun_at_once *a);
/** tun_at_once_gains() - Return: several frames at once save at least TUN_AT_ONCE_LEAST.
 * @a: may be NULL */
bool tun_at_once_gains(const struct tun_at_once *a);
