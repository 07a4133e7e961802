/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service.h - the service manager: watchdog, inherited sockets, the journal
 *
 * service_systemd.c speaks through libsystemd; service_none.c is built where that is missing and
 * answers that there is no service manager. Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** dmn_service_watchdog_us() - interval within which WATCHDOG=1 is expected, 0: none. */
uint64_t dmn_service_watchdog_us(void);

/**
 * dmn_service_sockets() - listening sockets that were passed in, by FileDescriptorName
 * *ret_frames and *ret_control: the descriptor (close-on-exec, ours from now on) or -1; a single
 * unnamed one is the frames socket. Others are closed. Return: 0, -EINVAL for something that is no
 * listening Unix stream socket.
 */
int dmn_service_sockets(int *ret_frames, int *ret_control);

bool dmn_service_has_journal(void);
/** dmn_service_journal() - one entry; fields that are NULL are left out. Return: 0 or -errno. */
int dmn_service_journal(int level, const char *text, const char *id, const char *model,
                        const char *plan, const char *client);
