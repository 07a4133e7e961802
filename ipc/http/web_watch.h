/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/http/web_watch.h - the connections of piped-http, and a thread that cuts slow ones
 *
 * A connection that receives a request, sends an answer or says nothing may do so for request_s,
 * however many bytes it moves meanwhile. The time in which an answer is computed does not count.
 *
 * Threads: any.
 */
#pragma once

#include "ipc/http/web.h"

struct web_conn;

/** web_watch_new() - starts the thread. Return: 0; -ENOMEM, -EAGAIN. */
int web_watch_new(struct web *w, struct web_watch **ret);
/** web_watch_free() - ends it; when no connection is left. Return: NULL. */
struct web_watch *web_watch_free(struct web_watch *watch);
/** web_conn_add() - Return: NULL: no memory. */
struct web_conn *web_conn_add(struct web_watch *watch, int fd);
void web_conn_remove(struct web_watch *watch, struct web_conn *c);
/** web_conn_works() - @works: an answer is computed; false: the time begins again. */
void web_conn_works(struct web_watch *watch, struct web_conn *c, bool works);
/** web_conn_owes() - a request has begun (+1) or is over (-1). */
void web_conn_owes(struct web_watch *watch, int by);
size_t web_watch_connections(struct web_watch *watch);
size_t web_watch_owed(struct web_watch *watch);
/** web_watch_drain() - waits until no request is under way, or for @s seconds. */
void web_watch_drain(struct web_watch *watch, double s);
