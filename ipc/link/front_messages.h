/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/link/front_messages.h - handles each message of the front's clients
 *
 * Threads: the front's.
 */
#pragma once

#include "ipc/link/front_conn.h"

/** front_messages_read() - epoll's @events came; never closes. */
void front_messages_read(struct front_conn *c, uint32_t events);
/** front_messages_settle() - does what has become possible; closes a connection that has ended.
 * Return: another round may get further. */
bool front_messages_settle(struct front_conn *c);
