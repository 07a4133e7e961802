/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/adapt/adapt_options.h - what watching and its guards can be told; see adapt.h */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
