/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/service.h - the service manager: watchdog, inherited sockets, the journal
 *
 * service_systemd.c uses libsystemd. service_none.c replaces it in builds without libsystemd and
 * reports that there is no service manager. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** dmn_service_watchdog_us() - Return: the interval in which WATCHDOG=1 is expected; 0: none. */
uint64_t dmn_service_watchdog_us(void);

/**
 * dmn_service_sockets() - takes the listening sockets that were passed in, by FileDescriptorName
 *
 * *ret_frames, *ret_control: a close-on-exec descriptor, owned by the caller, or -1. A single
 * unnamed socket is the frames socket. All others are closed. Return: 0; -EINVAL: one is not a
 * listening Unix stream socket.
 */
int dmn_service_sockets(int *ret_frames, int *ret_control);

/** dmn_service_status() - tells the service manager what to show as the service's status. May wait
 * for it: not for the loop, which has dmn_notify(). */
void dmn_service_status(const char *text);

/** dmn_service_journal() - writes one entry without the fields that are NULL. Return: 0;
 * -errno: also where there is no journal. */
int dmn_service_journal(int level, const char *text, const char *id, const char *model,
                        const char *plan, const char *client);
