/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/boards/step.h - a segment that a pass may add, what its links and ports take,
 * and how many units some boards can run at most */
#pragma once

#include "tuner/boards/map.h"

/* A segment that may be added: units from..to-1 on the boards of an edge. */
struct tun_step {
    const struct tun_edge *edge;
    uint32_t before, after; /* boards at its borders; after: 0, not known */
    size_t from, to;
    bool last;
    double in_bytes, out_bytes;
    double latency_ns; /* of the border in front of it, and of the answer */
    double head_ns;    /* of the head's port, for frames and answers of others */
};

/** tun_port_ns() - of a board's port for a frame of the stream, of which it has the share @x. */
double tun_port_ns(const struct tun_map *m, const struct tun_step *s, size_t b, double x);

/** tun_head_ns() - the same of the head, when it hands frames to others or takes answers and has no
 * segment there. */
double tun_head_ns(const struct tun_map *m, const struct tun_step *s);

/** tun_unshared_ns() - the links and the port that count with a segment of one board. */
double tun_unshared_ns(const struct tun_map *m, const struct tun_step *s, size_t b);

/** tun_border_latency() - the slowest link between two neighbours, until a message is there. */
double tun_border_latency(const struct tun_map *m, uint32_t from, uint32_t to, double bytes);

/**
 * tun_rest() - for each set of boards the first unit from which they may be able to run the rest,
 * if links and memory were nothing
 * @reach: [n + 1] of each kind, as tun_inner_reach(). @ret: [1 << boards], by mask; only sets of
 * the map's order are written (tun_nodes_canonical()).
 */
void tun_rest(struct tun_map *m, double period_ns, uint16_t *const *reach, uint16_t *ret);
