/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/own_state.h - what this board says of itself, to other boards and to its daemon
 *
 * The daemon is asked for its execution places and for measured costs of the segments that it
 * serves; the links are measured here. Small changes of measured figures are no news. Threads: the
 * loop.
 */
#pragma once

#include "apps/link/common/link.h"

struct pollfd;

int own_state_new(struct link *l, struct own_state **ret);
struct own_state *own_state_free(struct own_state *o);
/** own_state() - Return: the present state. */
const struct brd_state *own_state(const struct own_state *o);
struct pollfd own_state_poll(const struct own_state *o);
/** own_state_go() - asks the daemon, tells boards; notices whether the daemon is silent. */
void own_state_go(struct link *l, uint64_t now_ns);
/** own_state_joined() - tells a board that has just come. */
void own_state_joined(struct link *l, size_t peer);
/** own_state_take() - a BOARD message. */
link_take own_state_take;
