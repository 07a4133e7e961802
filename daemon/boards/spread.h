/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread.h - which route a model should have now
 *
 * One for each model whose key `boards` is not "off". It hears every report of piped-link and says
 * what it wants by wanted(); others tell piped-link and watch what becomes of it.
 *
 * Threads: the loop thread; slow work is queued (daemon/service/work.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "ipc/boards/board_state.h"

struct dmn_model;
struct dmn_spread;
struct dmn_spread_query;

/**
 * dmn_spread_new() - @config_text: models[].boards, "auto" or a route; not "off"
 * @wanted: called when dmn_spread_route() has changed, but not from here. Return: 0; -ENOMEM. A
 * model that cannot be spread has no route; dmn_spread_why() says why.
 */
int dmn_spread_new(struct dmn_model *m, const char *config_text,
                   void (*wanted)(void *ctx, struct dmn_spread *s), void *ctx,
                   struct dmn_spread **ret);
/** dmn_spread_free() - Takes NULL. Return: NULL. */
struct dmn_spread *dmn_spread_free(struct dmn_spread *s);
/** dmn_spread_report() - @r: borrowed during the call; NULL: piped-link is away. Called at each
 * report, so once a second at least while piped-link is there. */
void dmn_spread_report(struct dmn_spread *s, const struct brd_link_report_all *r, uint64_t now_ns);
/** dmn_spread_route() - Return: what it wants now, with a number of its own (dmn_route_number());
 * hop_count 0: this board alone. Valid until wanted() is called again. */
const struct brd_route *dmn_spread_route(const struct dmn_spread *s);
/** dmn_spread_why() - Return: a phrase for the history, such as "board b2 is away". */
const char *dmn_spread_why(const struct dmn_spread *s);

/** dmn_spread_set() - a user sets a route, until dmn_spread_unset()
 * @r: the newest report; NULL: piped-link is away. @why: DMN_ROUTE_ERROR_MAX bytes. Return: 0, and
 * wanted() was called; -EINVAL with @why, and nothing was changed. */
int dmn_spread_set(struct dmn_spread *s, const char *text, const struct brd_link_report_all *r,
                   char *why);
/** dmn_spread_set_alone() - the same: no route. */
void dmn_spread_set_alone(struct dmn_spread *s);
/** dmn_spread_unset() - the configuration decides again. */
void dmn_spread_unset(struct dmn_spread *s, const struct brd_link_report_all *r);
bool dmn_spread_is_set(const struct dmn_spread *s);
/** dmn_spread_query() - what is known now, for a work thread. @ret: the caller's,
 * dmn_spread_query_deinit(). Return: 0; -EOPNOTSUPP: the model cannot be spread, dmn_spread_why();
 * -ENODATA: piped-link is away; -EINVAL or -ENOMEM. */
int dmn_spread_query(const struct dmn_spread *s, struct dmn_spread_query *ret);
