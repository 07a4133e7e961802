/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/route/route.h - the head of this board's models that are spread over boards
 *
 * The daemon sets routes (route_set()). Each new one is an epoch: all its boards are told their
 * place (PLAN), and when all have given credit, new frames go over it; those in flight finish under
 * theirs. A loss ends the epochs that need what was lost; their frames wait for the next epoch, and
 * no frame is answered twice, or out of order: see ledger.h. When the daemon withdraws a route,
 * frames that wait are answered `unavailable`, and the daemon computes them itself.
 *
 * The functions that messages call only note what happened; route_go() sends and answers.
 *
 * Threads: the loop.
 */
#pragma once

#include "apps/link/common/link.h"
#include "apps/link/front/server.h"
#include "apps/link/weights/fetch.h"

/** heads_new() - without a model. Return: NULL: out of memory. */
struct heads *heads_new(void);
/** heads_free() - after the transport and the front are closed. */
struct heads *heads_free(struct heads *h);

/** route_frame() - takes a frame; @user: the link. Return: 0; PIPED_UNAVAILABLE: no route serves
 * the model, or there are too many frames. */
int route_frame(void *user, struct front_frame *f);
/** route_share() - as front_listener.share: as many as keep the route full. Return: at least 1. */
uint32_t route_share(void *user, const char *model);
/** route_gone() - nobody wants this frame any more: it is not sent, or boards are told to leave it.
 */
void route_gone(void *user, struct front_frame *f);
/** route_set() - all routes there are. Return: false: memory or a place lacked for some; call it
 * again. */
bool route_set(struct link *l, const struct brd_routes *routes);
/** route_credit(), route_answer() - a CREDIT or an ANSWER has come. */
link_take route_credit, route_answer;
/** route_error() - Return: false: not of a stream of ours. */
bool route_error(struct link *l, size_t board, const struct lnk_message *m);
/** route_peer_gone() - its epochs lose it. */
void route_peer_gone(struct link *l, size_t peer);
/** route_go() - sends what is due, answers what is answered. Return: when it wants to be called
 * again, at the latest; UINT64_MAX: when something happens. */
uint64_t route_go(struct link *l, uint64_t now_ns);
/** route_states() - Return: how many. */
size_t route_states(const struct link *l, struct brd_route_state ret[BRD_ROUTES_MAX]);
/** route_path() - is a fetch_path(): of the file of a route. */
fetch_path route_path;
