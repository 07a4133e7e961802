/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/oneboard/ways.h - the ways to run one segment of a space by both energy and latency */
#pragma once

#include "tuner/oneboard/options.h"

#define TUN_WAYS_MAX 512u /* of a segment; more are left out: .cut */

struct tun_way {
    uint16_t row, last;
    double nj, ns;     /* ns: no frame stays longer in a team */
    double slowest_ns; /* no team is slower */
    uint16_t batch;    /* as in struct tun_option */
};
struct tun_ways {
    const struct tun_space *s; /* borrowed */
    double need, latency_ns;   /* rate at least, no team slower; to be set by the user */
    bool cut;
    double *rate, *ep_rate, *least; /* owned */
    struct tun_way *list;           /* [TUN_WAYS_MAX], owned */
};
#define TUN_WAYS_NULL ((struct tun_ways){0})

/** tun_ways_init() - Return: 0 or -ENOMEM. */
int tun_ways_init(const struct tun_space *s, struct tun_ways *ret);
void tun_ways_deinit(struct tun_ways *w);

/** tun_ways_make() - the ways of which none is worse in cores, energy and slowest team. Return: how
 * many, in .list. */
size_t tun_ways_make(struct tun_ways *w, size_t from, size_t to);
