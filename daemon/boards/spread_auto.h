/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/boards/spread_auto.h - a model's route as it is planned: joins costs, decisions and the
 * planner over boards
 *
 * It hears every report of piped-link. When a route is to be sought, a work thread solves on a copy
 * of all it needs, and the loop thread applies the answer, unless boards went meanwhile: then it is
 * sought again. One search at a time.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/boards/spread_query.h"

struct dmn_auto;
struct dmn_model;

/* @hop: wanted now, without what follows from the model; valid until the next call. @count: 0: this
 * board alone. */
typedef void dmn_auto_fn(void *ctx, const struct brd_hop *hop, size_t count);

/**
 * dmn_auto_new() - @content: what boards call the model (brd_route.content), copied
 * @changed: called when other hops are wanted, from dmn_auto_report() or later
 * Return: 0; -EINVAL: the model is a segment; -ENOMEM.
 */
int dmn_auto_new(struct dmn_model *m, const char *content, dmn_auto_fn *changed, void *ctx,
                 struct dmn_auto **ret);
/** dmn_auto_free() - Takes NULL. The loop must run once more if a search is going on. Return:
 * NULL. */
struct dmn_auto *dmn_auto_free(struct dmn_auto *a);

/** dmn_auto_report() - @r: borrowed during the call; NULL: piped-link is away. @state: in @r, of
 * the route that was made of the present hops; NULL: none. */
void dmn_auto_report(struct dmn_auto *a, const struct brd_link_report_all *r,
                     const struct brd_route_state *state, uint64_t now_ns);

/** dmn_auto_hold() - from now on it seeks nothing and wants no hops; it goes on to hear reports.
 * changed() is not called. */
void dmn_auto_hold(struct dmn_auto *a);
/** dmn_auto_release() - it seeks again. @hop: wanted until something better is found. */
void dmn_auto_release(struct dmn_auto *a, const struct brd_hop *hop, size_t count);

/** dmn_auto_why() - Return: a sentence on why these. */
const char *dmn_auto_why(const struct dmn_auto *a);

/** dmn_auto_query() - all that is known now, for planning on a work thread. @ret: the caller's,
 * dmn_spread_query_deinit(). Return: 0; -ENODATA: piped-link is away; -EINVAL or -ENOMEM. */
int dmn_auto_query(const struct dmn_auto *a, struct dmn_spread_query *ret);
