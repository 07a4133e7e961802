/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/clocks.h - the times that one team measures: its service time, and the time of each unit
 *
 * While a team computes frames, it only records the tick counter after each unit
 * (pl_clocks_lap()). It updates the statistics after it has passed the frame on, so that they delay
 * no frame. The frame's start and end are read on both clocks and convert ticks to nanoseconds,
 * without calibration or drift.
 *
 * Time that others take from a core does not count as a unit's work: docs/pipeline.md says how a
 * disturbed run is told and what is left out of it. Each frame counts once, and its units' times
 * add up to its work. Service times stay wall time. Of a run of time T whose members lacked their
 * cores for l_1, l_2, ... the team had all its cores for at most T - max(l_i), if they lacked them
 * at the same time, and for at least T - sum(l_i), if one after the other. At the start, frames
 * wait for the first undisturbed run, and count as that one.
 *
 * One writer (the team), any readers. A sequence lock makes a sample consistent: version is odd
 * while the writer changes the counters, which are relaxed atomics. A reader that sees version odd
 * or changed reads again. The writer never waits. A reader may wait a few hundred nanoseconds for a
 * fold; it yields its core if the writer seems to have lost its own. But it waits for no writer
 * that stays away: the loop thread is a reader, and a team that lost its core to a program of
 * higher priority must not take the loop along. It then takes what is there, where one run may be
 * entered in part: an error of one sample.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"
#include "pipeline/stats.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Writer of all fields: the team, inside a fold. */
struct pl_clock_series {
    _Atomic uint64_t count;
    _Atomic double mean_ns, ewma_ns, min_ns, m2;
};

struct pl_clocks {
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint32_t version; /* writer: the team */
    _Atomic uint64_t frames, runs, busy_ns, cpu_ns;           /* writer: the team */
    struct pl_clock_series service;
    struct pl_clock_series work; /* of frames whose units were timed: the sum of these times */
    size_t unit_count;
    struct pl_clock_series *units; /* owned; unit_count of them */
    /* the team's own */
    uint64_t *laps;       /* owned; unit_count + 1 ticks, [0]: start of the frame */
    double *taken;        /* owned; unit_count ticks of the laps that others took, if disturbed */
    const double *shares; /* borrowed; per unit: expected part of the work; NULL: equal */
    size_t computed;      /* frames of the last run */
    double before_ns;     /* service time of the last run, of each frame; 0: there was none */
    bool doubtful;        /* the last run: read the CPU clock of the next one */
    bool known;           /* units have times */
    size_t unknown;       /* frames that wait for it */
    bool coarse;          /* the CPU clock does not tell the work of a run: wall time counts */
};

/* A team's measurements of one run: of a frame, or of several that it held at once. */
struct pl_clock_run {
    uint64_t start_ns, end_ns;
    /* CPU time of the leader, without what it spun for members that had lost their cores; for this
     * run and those in which it is not read */
    uint64_t cpu_ns;
    uint64_t own_ns; /* CPU time of the leader in this run, if clocked */
    /* For how long workers lacked their cores, if clocked: one at most, and all together. */
    uint64_t lost_most_ns, lost_sum_ns;
    size_t computed; /* frames that it computed; 0: passed on only, which counts as busy only */
    bool timed;      /* laps[] are set; the first at start_ns, the last at end_ns */
    bool clocked;    /* own_ns and lost_..._ns are set */
    bool probe;      /* what was measured before is old: this time replaces the average */
    /* set by pl_clocks_judge() */
    double work_ns; /* of each frame, without what others took */
    bool disturbed; /* others took something: taken[] are set */
    bool unsure;    /* work_ns is a guess */
};

/** pl_ticks_usable - whether the tick counter runs at the same rate on all cores; if not, ticks are
 * CLOCK_MONOTONIC. Set once, before any thread starts. */
extern bool pl_ticks_usable;

static inline uint64_t pl_ticks(void)
{
#if defined(__x86_64__)
    if (__builtin_expect(pl_ticks_usable, 1)) {
        return __rdtsc();
    }
#elif defined(__aarch64__)
    uint64_t t;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#endif
    return base_now_ns();
}

/** pl_clocks_init() - makes zeroed counters for @unit_count units. Return: 0, -ENOMEM. */
int pl_clocks_init(struct pl_clocks *c, size_t unit_count);
void pl_clocks_deinit(struct pl_clocks *c);

/** pl_clocks_lap() - records that the first @i units of the frame are done. Return: the ticks.
 * Threads: the team. */
static inline uint64_t pl_clocks_lap(struct pl_clocks *c, size_t i)
{
    return c->laps[i] = pl_ticks();
}

/** pl_clocks_split() - sets the laps between @first and @end, both recorded, in proportion to the
 * units' weights; units @first..@end - 1 ran in one go. Threads: the team. */
void pl_clocks_split(struct pl_clocks *c, size_t first, size_t end, const double *weights);

/** pl_clocks_judge() - finds out what others took of a run. @run: all but the last two fields are
 * set, and so are the laps. Threads: the team, before the fold; else nothing was taken. */
void pl_clocks_judge(struct pl_clocks *c, struct pl_clock_run *run);

/** pl_clocks_fold() - adds one run to the statistics. Each frame of it counts with an equal part of
 * the time. Threads: the team. */
void pl_clocks_fold(struct pl_clocks *c, const struct pl_clock_run *run);

/** pl_clocks_service_ns() - Return: moving average (EWMA) of service times, 0 before the first.
 * Where two runs in a row were 1.5 times and 4 ms above it, or below, it is the nearer one.
 * Threads: any. */
static inline double pl_clocks_service_ns(const struct pl_clocks *c)
{
    return atomic_load_explicit(&c->service.ewma_ns, memory_order_relaxed);
}

/** pl_clocks_read() - fills service, work, frames, runs, busy_ns and cpu_ns of @ret. Threads:
 * any.
 * Return: false: the team stayed away while it entered a run, see above. */
bool pl_clocks_read(const struct pl_clocks *c, struct pl_team_stats *ret);
/** pl_clocks_read_unit() - reads the team's unit @i. Threads: any. Return: as pl_clocks_read(). */
bool pl_clocks_read_unit(const struct pl_clocks *c, size_t i, struct pl_series *ret);
