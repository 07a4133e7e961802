/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/handlers.h - what the daemon does with the messages of clients: OPEN, a stream on a
 * model; POOL, client memory for its frames; and frames, which it takes, cancels and answers
 *
 * Threads: the loop thread.
 */
#pragma once

#include "ipc/server/connection.h"

/* for the connections of struct dmn_peer */
extern const struct ipc_server_ops dmn_handlers;
