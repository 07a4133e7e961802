/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/adapt_window.h - what was seen in one window: EPs, teams, events */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tuner/adapt/decision_record.h"

/* An EP as the governor reports it. */
struct tun_ep_seen {
    uint16_t cores;        /* there and allowed */
    uint64_t governor;     /* any number that stands for its name; 0: unknown */
    double khz, limit_khz; /* current and scaling_max_freq, 0: unknown */
    double hardware_khz;   /* cpuinfo_max_freq, 0: unknown */
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
