/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/handlers.h - handles each message of a client
 *
 * A frame is handled only when its stream has a record for it. Until then it stays in the buffer,
 * with everything that follows it.
 *
 * Threads: the loop thread.
 */
#pragma once

#include "daemon/frames/conn.h"

/** dmn_handle_messages() - handles the received messages while there is room for them, and until
 * the task's piece of time is over: then @c is `cut`. Never closes @c, but may end it. */
void dmn_handle_messages(struct dmn_conn *c);
