/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/adapt/apart.h - which cores of one EP are slower than their siblings
 *
 * The cores of an EP are equal, so the same work takes as long on each. Where one is slowed alone
 * (another program, a capped core, a busy SMT sibling), the mean over the EP's teams shows only
 * that the EP is slower. So each core is compared with its siblings: for what ran on it alone in a
 * window, l = log(measured / expected). With q the lower quartile of the newest l of the EP's other
 * cores (of four or fewer: the least), a detector (tuner/adapt/detect.h) runs on x = l - q. What
 * slows all cores alike, and an error of the table, cancel out.
 *
 * A core is apart once its detector is firm and exp(x) is at least TUN_APART, by the windows of the
 * change and in most of the last 2 TUN_APART_WINDOWS of its windows. Cores of teams wider than one
 * have no clock of their own and are not seen.
 *
 * Pure but for allocation; one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TUN_APART 1.4           /* times slower than its siblings */
#define TUN_APART_ALIKE 1.2     /* nearer than that it is one of them */
#define TUN_APART_RECENT 7u     /* windows, of which most say that it is */
#define TUN_APART_WINDOWS 8u    /* a shorter disturbance is not worth another plan */
#define TUN_APART_STALE 20u     /* windows after which what a core showed counts no more */
#define TUN_APART_CORES_MAX 64u /* cores that are told apart; others are not seen */

/* What ran on one core alone in a window. */
struct tun_core_seen {
    uint16_t ep, cpu;
    double level; /* log(measured / expected); not finite: no sample */
};

struct tun_slow_core {
    uint16_t cpu;
    double factor; /* times slower than its siblings */
    double least; /* exp(q): times slower than expected that these are, the median of as many of the
                      last windows as show most; below 1: faster */
    uint64_t since_ns; /* start of the window with which that began */
};

/** tun_apart_times() - Return: how many times slower the core was in this window than the fastest
 * other core of its EP; NAN: nothing was seen of it, or of any other. @seen: [count]. */
double tun_apart_times(const struct tun_core_seen *seen, size_t count, uint16_t cpu);

struct tun_apart; /* opaque */

/** tun_apart_new() - Return: NULL: no memory. */
struct tun_apart *tun_apart_new(void);
/** tun_apart_free() - takes NULL. Return: NULL. */
struct tun_apart *tun_apart_free(struct tun_apart *a);
/** tun_apart_forget() - begins anew: other EPs, or another plan. Takes NULL. */
void tun_apart_forget(struct tun_apart *a);
/** tun_apart_see() - one window. @seen: [count], any order, several of one core: their mean.
 * @start_ns: when it began. Microseconds. */
void tun_apart_see(struct tun_apart *a, const struct tun_core_seen *seen, size_t count,
                   uint64_t start_ns);
/** tun_apart_alike() - Return: the core is as fast as its siblings, by less than a factor of
 * TUN_APART_ALIKE, as most of the last @windows show: TUN_APART_RECENT, or 1 for a first sign;
 * false: it is not, or too little was seen. */
bool tun_apart_alike(const struct tun_apart *a, uint16_t cpu, size_t windows);
/** tun_apart_suspects() - as tun_apart_slow(), of cores that were noticed, and are apart if they go
 * on like this. Only cpu, factor and since_ns are set. */
size_t tun_apart_suspects(const struct tun_apart *a, struct tun_slow_core *ret);
/** tun_apart_slow() - the cores that are apart now. @ret: [TUN_APART_CORES_MAX]. Return: how
 * many. */
size_t tun_apart_slow(const struct tun_apart *a, struct tun_slow_core *ret);
