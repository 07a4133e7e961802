/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/route_fill.h - routes: what of them follows from the model, and routes as people
 * read them
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>

#include "ipc/boards/board_state.h"

struct dmn_model;

#define DMN_ROUTE_TEXT_MAX 1024u

/** dmn_route_number() - Return: a number for a new route; they rise, also over restarts. */
uint32_t dmn_route_number(void);
/** dmn_route_fits() - Return: NULL; a phrase, static: why @m cannot be spread over boards. */
const char *dmn_route_fits(const struct dmn_model *m);
/** dmn_route_fill() - sets all but number and hops. Return: 0; -EINVAL: a name or path is too
 * long. */
int dmn_route_fill(const struct dmn_model *m, struct brd_route *ret);
/** dmn_route_complete() - sets what follows from the model for its hops: leaves, border hashes and
 * primitives. Return: 0; -EINVAL: units that the model does not have; -ENOMEM. */
int dmn_route_complete(const struct dmn_model *m, struct brd_route *r);

/** dmn_board_find() - Return: the board with fingerprint @print, also this one; NULL: @r (may be
 * NULL) does not know it. */
const struct brd_state *dmn_board_find(const struct brd_link_report_all *r, const char *print);
/** dmn_board_name() - Return: its name, or "here", or @print if @r does not know it; borrowed. */
const char *dmn_board_name(const struct brd_link_report_all *r, const char *print);
/** dmn_board_up() - Return: it is this board, or one that is there. */
bool dmn_board_up(const struct brd_link_report_all *r, const char *print);
/** dmn_route_state() - Return: what piped-link says of the route @number of @model, or NULL. */
const struct brd_route_state *dmn_route_state(const struct brd_link_report_all *r,
                                              const char *model, uint32_t number);
/** dmn_hops_text() - "0-16@here|17-44@b2*2+b3"; shares have no common divisor. @r: for the names,
 * may be NULL. @ret: DMN_ROUTE_TEXT_MAX bytes; ends with "..." where it is longer. Threads: any. */
void dmn_hops_text(const struct brd_hop *hop, size_t count, const struct brd_link_report_all *r,
                   char *ret);
