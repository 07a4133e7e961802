/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/pipesim/scenario.h - machines that change by script
 *
 * A scenario says what the world is at any moment; tuner/pipesim/adapting.h plays it.
 */
#pragma once

#include "tuner/adapt/adapt.h"

#define PSIM_WINDOW_NS (100 * 1000000ull)
#define PSIM_WINDOW_S ((double)PSIM_WINDOW_NS / 1e9)

/* What the world is at one moment; EP 0 is the first of the platform. */
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
    double seconds;        /* it lasts */
    double onset_s, end_s; /* of what happens; 0: nothing does */
    enum tun_cause cause;  /* that the first change should name; NONE: no change at all */
    void (*world)(double t_s, const struct psim_scenario *s, struct psim_world *w);
    double amount;
};
extern const struct psim_scenario psim_scenarios[]; /* ends with a NULL name */
const struct psim_scenario *psim_scenario_find(const char *name);
