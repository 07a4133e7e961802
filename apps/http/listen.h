/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/http/listen.h - the listening sockets of piped-http
 *
 * They are those that the service manager passes, else those of --listen, else 127.0.0.1:8000. An
 * address that other machines can reach needs TLS, and a token or certificates of clients.
 */
#pragma once

#include "apps/http/web.h"
#include "ipc/listen.h"

struct web_listeners {
    struct web_listener each[WEB_LISTEN_MAX];
    struct ipc_socket_file files[WEB_LISTEN_MAX];
    size_t count;
    int netlink; /* for web_peers_open(), which takes it; -1: none was passed */
};

/** web_listen() - Return: 0; WEB_EXIT_USAGE, WEB_EXIT_CONFIG or 1, with a message. */
int web_listen(struct web *w, struct web_listeners *ret);
/** web_listen_end() - closes all, and removes the files of Unix sockets. */
void web_listen_end(struct web_listeners *l);
