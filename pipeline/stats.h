/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/stats.h - a pipeline's measurements, as plain data
 *
 * Service time: how long a team holds one frame, from taking it off its ring to having computed its
 * last unit. Work: that time without what others took from the leader's core; the times of units
 * add up to it. Frames that it computes at once count with an equal part of the time each. Busy:
 * share of wall time in which a team holds a frame. Queue: frames waiting in a team's input ring.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "pipeline/plan.h"

/* A running series of all samples since the plan started. For a window, keep a copy from its start
 * and subtract it by pl_series_since().
 *
 * The system sometimes takes a core away for tens of milliseconds; one such sample would dominate
 * the mean of many small ones. So each sample is winsorised against the running estimate:
 *     x' = min(x, e + max(e, a)),    e' = e + (x' - e) / 8
 * with e the ewma and a the allowance below; if the first sample exceeds the limit that the second
 * one sets, it is cut to that limit. A real slowdown shows soon: e grows by up to 1/8 per frame,
 * and once e >= x / 2 nothing is cut (after six frames if four times as slow, eighteen if sixteen
 * times). That of service times follows sooner (pl_clocks_service_ns()). busy_ns and the completion
 * times of frames are never cut. */
#define PL_SERIES_ALLOW_NS 4e6      /* service times: what a competing thread may take of a core */
#define PL_SERIES_ALLOW_UNIT_NS 1e3 /* units, whose times may be as short as a tick */
struct pl_series {
    uint64_t count;
    double mean_ns;
    double ewma_ns; /* weight 1/8 on the newest */
    double min_ns;
    double m2; /* sum of squared deviations from the mean (Welford) */
};

struct pl_team_stats {
    uint16_t stage, ep, width;
    uint16_t cpus[PL_CPU_MAX > 64 ? 64 : PL_CPU_MAX]; /* the cores its members are pinned to */
    bool pinned;                                      /* every member is pinned to its core */
    struct pl_series service;
    struct pl_series work; /* of the same frames, if units are timed */
    uint64_t frames;       /* frames it computed */
    uint64_t runs;         /* in so many runs; several frames may be computed in one */
    uint64_t busy_ns;      /* time it held frames */
    uint64_t waited_ns; /* for seats, with a frame that it had not begun or was in the middle of */
    uint64_t cpu_ns;    /* CPU time of its leader in that time, without waiting for its members */
    uint32_t queue;     /* frames in its input ring now */
    uint64_t held_since_ns; /* monotonic time since which it holds what it computes; 0: nothing */
};

/**
 * pl_series_since() - subtracts an earlier copy of a series, which leaves the window after it
 * count, mean and m2 cover the window alone, ewma_ns is the latest, and min_ns covers the whole
 * series. An empty window has count 0 and the mean of the whole series.
 *     n, k: samples before and after; m2 = M2 - m2_before - d^2 n k / (n + k), d the difference of
 *     the two means (Chan, Golub, LeVeque 1979, eq. 2.1, solved for the second part)
 * Pure; any thread; @ret may be either argument.
 */
void pl_series_since(const struct pl_series *before, const struct pl_series *now,
                     struct pl_series *ret);

/** pl_series_merge() - adds the samples of @from to @to; ewma_ns becomes their weighted mean. Pure;
 * any thread. */
void pl_series_merge(struct pl_series *to, const struct pl_series *from);
