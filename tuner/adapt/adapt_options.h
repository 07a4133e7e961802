/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/adapt_options.h - what a watch (adapt.h) can be told: options, and what was seen in
 * a window */
#pragma once

#include "tuner/adapt/decision_record.h"
#include "tuner/adapt/detect.h"

#define TUN_CALM 8u

struct tun_adapt_options {
    struct tun_detect_options detect;
    double gain_min;       /* relative, of a new plan */
    double gain_urgent;    /* relative; a plan that gains as much does not wait; 0: all wait */
    uint64_t cooldown_ns;  /* between changes */
    double hourly;         /* changes an hour at most, those of guards' exceptions included */
    double verify_margin;  /* relative, measured against predicted */
    unsigned settle;       /* windows that say what a plan does, >= 1 */
    unsigned backoff_most; /* doublings of the cool-down at most */
    uint64_t probe_ns;     /* 0: never */
    bool search;           /* decisions start a search, see tuner/adapt/decide.h */
};
#define TUN_ADAPT_DEFAULTS                                                                         \
    ((struct tun_adapt_options){.detect = TUN_DETECT_DEFAULTS,                                     \
                                .gain_min = 0.03,                                                  \
                                .gain_urgent = 0.25,                                               \
                                .cooldown_ns = 5000000000ull,                                      \
                                .hourly = 30,                                                      \
                                .verify_margin = 0.1,                                              \
                                .settle = 8,                                                       \
                                .backoff_most = 6,                                                 \
                                .probe_ns = 5000000000ull})

/* ---- what was seen in one window ---- */

/* An EP as the governor reports it. */
struct tun_ep_seen {
    uint16_t cores;        /* there and allowed */
    uint64_t governor;     /* any number that stands for its name; 0: unknown */
    double khz, limit_khz; /* current and scaling_max_freq, 0: unknown */
    bool thermal;          /* a cooling state or thermal pressure stands */
    uint64_t throttles;    /* a counter that only grows, 0: unknown */
};

struct tun_team_seen { /* one group of teams in one window; means over its frames */
    uint16_t stage, group;
    uint64_t frames;
    double service_ns;
    double cpu_ns; /* of the leader, without waiting for members; < 0: unknown */
    double busy;   /* share of the window in which its teams held frames, 0..1; 0: unknown */
    bool starved;  /* it waited for input for more than half of the window */
};

struct tun_seen_window {
    uint64_t start_ns, now_ns;
    const struct tun_ep_seen *eps;     /* [ep_count of the problem] */
    const struct tun_team_seen *teams; /* [team_count], any order; missing ones gave no sample */
    size_t team_count;
    unsigned events; /* TUN_EVENT_* but PROBE, since the last window */
    struct tun_felt felt;
    uint64_t hold_ns; /* a slowdown that only service times show has to stand for so long */
};
