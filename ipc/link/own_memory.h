/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/link/own_memory.h - how much memory models may take on this board */
#pragma once

#include <jansson.h>

/** own_memory_bytes() - @status: of the daemon. Return: what its models take and what is free for
 * them, by the machine and by the daemon's control groups, in steps of 16 MiB; 0: unknown. */
double own_memory_bytes(const json_t *status);
