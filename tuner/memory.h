/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/memory.h - what teams lose to each other because they share memory
 *
 * The cost table has the time of each unit alone, t. A part of it is spent on memory:
 *     m = min(t, bytes[u] / d),    d = min(w gbytes[k], gbytes_max[k])
 * on w cores of EP k (a bottleneck as in the roofline: Williams, Waterman, Patterson 2009). While
 * the demands of all teams that stream at a time pass what the memory G gives (gbytes_max of the
 * EP, and of the machine), each of them takes so many times as long. A team that spends M of its
 * time T of a frame on memory streams for the share x of the wall clock, and takes T' for a frame:
 *     T' = T + M (s - 1),    s = max over both G of E[ max(1, (d + D) / max(G, d)) ]
 *     x = s M / T' * (period of its stage / bottleneck)
 * D is what the other teams move just then: each streams with its share x, independently, so their
 * number is binomial. x depends on T' and T' on x: both are iterated. The fixed point of processors
 * that wait for a shared memory is from J. H. Patel, Analysis of Multiprocessors with Private Cache
 * Memories, IEEE Transactions on Computers C-31 (1982); a slowdown by demand is HaX-CoNN's, too
 * (Dagli, Belviranli, PPoPP 2024).
 *
 * Where figures are unknown (0), and over several boards, nobody loses anything: T' = T. Pure
 * functions; any thread.
 */
#pragma once

#include "tuner/problem.h"

/* By how much each team of a group is slower than alone: T' / T, at least 1. */
struct tun_slowed {
    double by[PL_STAGE_MAX][PL_GROUP_MAX];
    double stretch[PL_STAGE_MAX][PL_GROUP_MAX]; /* of its time on memory: s */
};

/** tun_memory_competes() - Return: the figures of units and EPs are known, on one board. */
bool tun_memory_competes(const struct tun_problem *p);

/** tun_memory_ns() - Return: how much of the unit's time alone goes to memory: m; 0: unknown. */
double tun_memory_ns(const struct tun_problem *p, size_t ep, size_t width, size_t unit);

/** tun_memory_alone_ns() - Return: what the unit takes alone that takes @ns while its time on
 * memory is @stretch times as long. */
double tun_memory_alone_ns(const struct tun_problem *p, size_t ep, size_t width, size_t unit,
                           double ns, double stretch);

/** tun_memory_slowed() - what the teams of @plan lose
 * @plan: valid for the problem. Return: true; false: nobody loses anything, or a cost is unknown,
 * and @ret is not written. */
bool tun_memory_slowed(const struct tun_problem *p, const struct pl_plan *plan,
                       struct tun_slowed *ret);

/**
 * tun_memory_under() - a table for planners that see a stage at a time: what each unit takes while
 * all other cores stream as those of @plan do, on average of their EP
 * @plan: NULL: as if each core ran the whole network
 * @ret: owned; figures of memory are 0, so that nothing is added twice.
 * Return: 0 or -ENOMEM.
 */
int tun_memory_under(const struct tun_problem *p, const struct pl_plan *plan,
                     struct tun_problem *ret);
