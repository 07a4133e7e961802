/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/refusing.h - clients of inherited sockets learn why the daemon does not start
 *
 * With socket activation a client that waits starts the service. If that fails and the client still
 * waits, the service manager starts it again at once, until its limits of starts make the sockets
 * fail, too, and nobody reaches the service even after the cause is mended. So a start that fails
 * answers who waits, and goes on answering for a moment: no client is left waiting, and starts
 * follow each other slowly enough for the unit's StartLimitBurst=.
 */
#pragma once

#include <stdbool.h>

/* How long it stays without clients; after the last one; at most, if it knows when to end. In 30 s
 * clients can start it fewer times than StartLimitBurst= of piped.service allows, so that people
 * can start it besides. */
#define DMN_REFUSING_IDLE_MS 200u
#define DMN_REFUSING_BUSY_MS 2000u
#define DMN_REFUSING_MOST_MS 10000u

struct dmn_inherited {
    int frames, control; /* listening sockets, owned by the one who has the struct; -1: none */
};
#define DMN_INHERITED_NULL                                                                         \
    {                                                                                              \
        -1, -1                                                                                     \
    }

/** dmn_inherited_copy() - Return: the same sockets by descriptors of their own, -1 where there is
 * none or none can be made. */
struct dmn_inherited dmn_inherited_copy(const struct dmn_inherited *from);
void dmn_inherited_close(struct dmn_inherited *in);

/**
 * dmn_refuse_start() - tells the service manager and clients why the daemon does not start
 *
 * @why: one line. Clients of frames get an ERROR of status unavailable, control clients the error
 * NotStarted. It stays for DMN_REFUSING_IDLE_MS, and for DMN_REFUSING_BUSY_MS once somebody has
 * connected; it returns at once if there is no socket.
 * @changed: asked before each answer, whether a start would go another way now: then it returns,
 * and who waits starts the service. So clients that ask again and again may keep it for
 * DMN_REFUSING_MOST_MS. NULL: nobody knows.
 * Threads: the main thread, while no loop runs. Blocks.
 */
void dmn_refuse_start(const struct dmn_inherited *in, const char *why,
                      bool (*changed)(const void *ctx), const void *ctx);
