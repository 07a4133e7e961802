/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/watch.h - the connections of piped-http, and a thread that cuts slow ones
 *
 * A connection that receives a request, sends an answer or says nothing may do so for request_s,
 * however many bytes it moves meanwhile. The time in which an answer is computed does not count.
 *
 * An address (--listen) has --connections places, of which one user of this machine gets
 * --per-user, and one IP address --per-address. Where none is free, whoever has most of them loses
 * the one that has waited or been idle for longest, to a client of somebody who has fewer.
 *
 * Threads: any.
 */
#pragma once

#include "apps/http/web.h"

struct web_conn;

/** web_watch_new() - starts the thread. Return: 0; -ENOMEM, -EAGAIN. */
int web_watch_new(struct web *w, struct web_watch **ret);
/** web_watch_free() - ends it; when no connection is left. Return: NULL. */
struct web_watch *web_watch_free(struct web_watch *watch);
/** web_conn_add() - a client has connected to @l. Without a place for it, it is cut at once; the
 * caller goes on as with others. Return: NULL: no memory. */
struct web_conn *web_conn_add(struct web_watch *watch, const struct web_listener *l, int fd);
/** web_conn_owner() - Return: NULL for NULL. */
struct web_owner *web_conn_owner(struct web_conn *c);
/** web_conn_target() - Return: where the target of the request that comes in is kept until its head
 * is here; NULL for NULL. Threads: the connection's. */
struct web_target *web_conn_target(struct web_conn *c);
void web_conn_remove(struct web_watch *watch, struct web_conn *c);
/** web_conn_works() - @works: an answer is computed; false: the time begins again. */
void web_conn_works(struct web_watch *watch, struct web_conn *c, bool works);
/** web_conn_owes() - a request has begun, or is over. @c may be NULL. */
void web_conn_owes(struct web_watch *watch, struct web_conn *c, bool owes);
/** web_watch_connections() - Return: how many there are. @ret_owed: requests under way. */
size_t web_watch_connections(struct web_watch *watch, size_t *ret_owed);
/** web_watch_drain() - waits until no request is under way, or for @s seconds. */
void web_watch_drain(struct web_watch *watch, double s);
