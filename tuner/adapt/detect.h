/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/detect.h - notices that a level has changed: a CUSUM in both directions, for one team
 *
 * A sample x is log(measured / expected) service time, one a window. With the level that counts as
 * no change, b, and the spread s:
 *     z = max(-clip, min(clip, (x - b) / s))
 *     up   = max(0, up + z - k)       slower, once up   >= h
 *     down = max(0, down - z - k)     faster, once down >= h
 * (Page 1954.) s is 1.4826 times the median of |residuals - their median| over TUN_DETECT_RING
 * windows, never below sigma_floor, and sigma_start until there are TUN_DETECT_WARM. k in spreads
 * is half the smallest shift of interest. One spike adds at most clip - k < h, so it alone never
 * raises an alarm.
 *
 * An alarm whose sum reaches `firm` is one to act on, with two refinements. Where neighbouring
 * windows are correlated (r, of clipped residuals), chance climbs higher: firm is raised by
 * (1 + r) / (1 - r) over TUN_DETECT_OMEGA, unless the change is TUN_DETECT_PLAIN clips or
 * TUN_DETECT_LARGE large. And a change of more than a clip has to show in each of the last
 * TUN_DETECT_STEADY windows, as spikes do not.
 *
 * The size of a change is the median of the residuals since it began. Where the last
 * TUN_DETECT_NEWEST windows are more than a clip beyond that, the change begins with them.
 *
 * Pure; one thread at a time; no allocation. A figure that is not finite is no sample.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUN_DETECT_RING 128u
#define TUN_DETECT_WARM 16u
#define TUN_DETECT_OMEGA 2.0
#define TUN_DETECT_NEWEST 3u
#define TUN_DETECT_STEADY 4u
#define TUN_DETECT_PLAIN 2.0
#define TUN_DETECT_LARGE 0.4

struct tun_detect_options {
    double k, h, firm, clip;         /* in spreads; 0 < k < clip, clip - k < h <= firm */
    double sigma_floor, sigma_start; /* relative; > 0 */
};
/* An alarm is a notice, early on purpose: h is just above what two spikes add, so that a shift of
 * 15 % under noise of 3 % is an alarm in its third window. Acting waits for firm, and for a plan
 * that pays (tuner/adapt/adapt.h). */
#define TUN_DETECT_DEFAULTS                                                                        \
    ((struct tun_detect_options){                                                                  \
        .k = 1, .h = 6.2, .firm = 14, .clip = 4, .sigma_floor = 0.02, .sigma_start = 0.03})

enum tun_change { TUN_SAME, TUN_SLOWER, TUN_FASTER };

struct tun_side {
    double score;      /* the sum, in spreads, at most twice firm */
    size_t windows;    /* since it left 0 */
    uint64_t since_ns; /* start of the first of them */
};

struct tun_detect {
    struct tun_detect_options options;
    float ring[TUN_DETECT_RING];        /* x - b, the last ones */
    uint64_t starts[TUN_DETECT_NEWEST]; /* of the last windows */
    size_t count;                       /* samples ever */
    double base;                        /* b */
    double sigma;                       /* s */
    double omega;                       /* (1 + r) / (1 - r), 1 at least */
    struct tun_side up, down;
};

/** tun_detect_check() - Return: the options are within the ranges above. */
bool tun_detect_check(const struct tun_detect_options *o);

/** tun_detect_init() - level 0, no samples; @o passes tun_detect_check(). */
void tun_detect_init(struct tun_detect *d, const struct tun_detect_options *o);

/** tun_detect_add() - one window. @x: log(measured / expected); @start_ns: when it began, on the
 * caller's clock, only handed back. Return: the alarm that stands after it (firm or not). */
enum tun_change tun_detect_add(struct tun_detect *d, double x, uint64_t start_ns);

/** tun_detect_state() - the alarm that stands. */
enum tun_change tun_detect_state(const struct tun_detect *d);
/** tun_detect_firm() - Return: the standing alarm has gone on to `firm`. */
bool tun_detect_firm(const struct tun_detect *d);

/** tun_detect_change() - windows since the standing alarm's change began; 0: no alarm.
 * @ret_since_ns: may be NULL. */
size_t tun_detect_change(const struct tun_detect *d, uint64_t *ret_since_ns);

/** tun_detect_level() - b plus the median of the last @windows residuals (those there are, at most
 * TUN_DETECT_RING); b without any. exp() of it is the factor on the expected time. */
double tun_detect_level(const struct tun_detect *d, size_t windows);

/** tun_detect_rebase() - @level is the new b; both sums start at 0; the spread is kept. */
void tun_detect_rebase(struct tun_detect *d, double level);
