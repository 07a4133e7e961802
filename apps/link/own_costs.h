/* SPDX-License-Identifier: Apache-2.0 */
/** apps/link/own_costs.h - measured costs of the segments that the daemon here serves */
#pragma once

#include "apps/link/common/link.h"

struct daemon_conn;
struct segment;

/* Asks for one segment after the other. Starts as zeros. */
struct own_costs {
    struct brd_state *state;
    uint64_t next_ns;
    size_t at; /* of segments_each() */
    bool waits, changed;
    char content[BRD_CONTENT_BYTES]; /* of the segment that was asked for */
    uint32_t first_unit, unit_count;
};

/** own_costs_go() - Return: costs of @state have changed. */
bool own_costs_go(struct own_costs *c, struct link *l, struct brd_state *state,
                  struct daemon_conn *conn, uint64_t now_ns);
/** own_costs_drop() - forgets all costs. */
void own_costs_drop(struct brd_state *state);
