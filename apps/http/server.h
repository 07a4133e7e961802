/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/server.h - libmicrohttpd: connections, requests and their bodies */
#pragma once

#include "apps/http/web.h"

/** web_server_start() - serves a listening socket. @tls: borrowed until it stops. Return: false,
 * with a message. */
bool web_server_start(struct web_listener *l, const struct web_tls *tls);
/** web_server_stop() - ends its connections. Before it, MHD_quiesce_daemon() gave the socket
 * back. */
void web_server_stop(struct web_listener *l);
