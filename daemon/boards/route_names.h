/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/route_names.h - a route as people write it, for a model and the boards of a report
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/config/route_text.h"
#include "ipc/boards/board_state.h"

struct dmn_model;

/** dmn_names_read() - reads a route for the units of @m. @why: DMN_ROUTE_ERROR_MAX bytes. Return:
 * 0; -EINVAL with @why set, and @ret has no hops. */
int dmn_names_read(const struct dmn_model *m, const char *text, char *why,
                   struct dmn_route_text *ret);
/** dmn_names_here() - Return: all of it is on this board. */
bool dmn_names_here(const struct dmn_route_text *t);
/** dmn_names_print() - Return: the fingerprint of the board that is called @name; NULL: there is
 * none. */
const char *dmn_names_print(const struct brd_link_report_all *r, const char *name);
/** dmn_names_away() - Return: the first board of the text that is not there; NULL: all are. */
const char *dmn_names_away(const struct dmn_route_text *t, const struct brd_link_report_all *r);
/** dmn_names_hops() - sets the hops, without leaves. All boards are known. */
void dmn_names_hops(const struct dmn_route_text *t, const struct brd_link_report_all *r,
                    struct brd_route *ret);
