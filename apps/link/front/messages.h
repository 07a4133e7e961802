/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/front/messages.h - what the front does with the messages of its clients
 *
 * Threads: the front's.
 */
#pragma once

#include "ipc/server/connection.h"

/** front_messages() - for the connections of struct front_conn; static. */
const struct ipc_server_ops *front_messages(void);
