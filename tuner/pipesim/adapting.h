/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/adapting.h - machines that change by script, and what adapting makes of it
 *
 * A scenario says what the world is at any moment.
 *
 * Windows of 100 ms on a scripted clock. Each team's service time is what the truth says for the
 * EP's slowness and frequency (every unit with a compute-boundness of its own), times AR(1)
 * noise, in a share of windows times a spike of 20 % to 170 %. The table that the planner has is
 * off by `error`. A decision is made between two windows. Its plan and the serving one then take
 * turns of a window each (tuner/adapt/turns.h), and 2 ms are lost at each switch; where
 * the old plan does not fit any more, or too few frames come to compare, it is switched to at once.
 * Frames are counted, and those that the first plan would have served. The same seed gives the same
 * answer.
 *
 * With another algorithm than exact, a decision starts its search: each trial takes some windows of
 * the world, and the best plan measured serves, as in daemon/plans/retune.h.
 */
#pragma once

#include "tuner/adapt/adapt.h"
#include "tuner/search/search.h"

#define PSIM_WINDOW_NS (100 * 1000000ull)
#define PSIM_WINDOW_S ((double)PSIM_WINDOW_NS / 1e9)

/* What the world is at one moment; EP 0 is the first of the platform. In a scenario a factor, a
 * share or a load of 0 stands for 1. */
struct psim_world {
    double contended[PL_EP_MAX]; /* factor on service time, spent waiting */
    double slowed[PL_EP_MAX];    /* factor on service time, spent working */
    double quota[PL_EP_MAX];     /* share of the time in which its teams may run; 1: all */
    double clock[PL_EP_MAX];     /* share of the highest frequency */
    bool limited[PL_EP_MAX], powersave[PL_EP_MAX], thermal[PL_EP_MAX];
    uint16_t cores_less[PL_EP_MAX];
    double load; /* of what the plan could do; below 0.5 teams starve */
    int64_t clock_skew_ns;
    unsigned events;
};

struct psim_scenario {
    const char *name, *what;
    double seconds;         /* it lasts */
    double onset_s, end_s;  /* of what happens; 0: nothing does */
    enum tun_cause cause;   /* that the first change should name; NONE: no change at all */
    struct psim_world then; /* from onset_s to end_s */
    /* drifts: grows in that time, and stays; comes and goes: every 5 s */
    enum { PSIM_STAYS, PSIM_DRIFTS, PSIM_COMES_AND_GOES } how;
    unsigned begins, ends; /* TUN_EVENT_* at onset_s and at end_s */
    int64_t skew_after_ns; /* of the clock, from end_s on */
};
extern const struct psim_scenario psim_scenarios[]; /* ends with a NULL name */
/** psim_scenario_world() - the world of a scenario after @t seconds. */
void psim_scenario_world(const struct psim_scenario *s, double t, struct psim_world *ret);
const struct psim_scenario *psim_scenario_find(const char *name);

#define PSIM_CHANGES_MAX 32u

struct psim_noise {
    double cv, correlation; /* AR(1) */
    double spikes;          /* share of windows */
    double error;           /* relative sigma of the planner's table */
};
#define PSIM_NOISE                                                                                 \
    ((struct psim_noise){.cv = 0.03, .correlation = 0.3, .spikes = 0.02, .error = 0.03})

struct psim_change { /* of the plan */
    double at_s;
    enum tun_cause cause;
    double gain; /* predicted */
    struct pl_plan plan;
};

struct psim_searched { /* a search on the machine as it was */
    double at_s;
    enum tun_cause cause;
    size_t trials;
    double before_ms, after_ms; /* bottleneck of the plans before and after, as measured */
};

struct psim_adapted {
    size_t searches;
    struct psim_searched found[PSIM_CHANGES_MAX]; /* by the first ones */
    size_t windows, alarms, decisions, changes, backs;
    size_t contests, turns; /* plans that took turns with the serving one, and pairs of turns */
    double frames, frames_first; /* served; and what the first plan alone would have served */
    double noticed_windows;      /* from onset to the first alarm or decision; INFINITY: never */
    double changed_s;            /* from onset to the first change; INFINITY: never */
    double returned_s;           /* from the end to the next change; INFINITY: never */
    double ratio_slow; /* throughput of the serving plan / the best, at the end of the change */
    double ratio_end;  /* the same in the last window */
    struct pl_plan first, last;               /* that served */
    struct psim_change log[PSIM_CHANGES_MAX]; /* the first ones */
};

struct psim_adapting {
    const struct tun_problem *truth; /* borrowed */
    const struct psim_scenario *scenario;
    const struct tun_adapt_options *options; /* NULL: defaults */
    struct psim_noise noise;
    double seconds; /* 0: the scenario's */
    uint64_t seed;
    const struct tun_algorithm *algorithm; /* NULL: exact */
    size_t trials_max;                     /* of a search; 0: its own limit */
    /* called with every decision; NULL: nobody listens */
    void (*decided)(void *context, double at_s, const struct tun_record *r,
                    const struct tun_decision *d);
    void *context;
};

/** psim_adapt() - Return: 0 or -errno. */
int psim_adapt(const struct psim_adapting *how, struct psim_adapted *ret);
