/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/promises.h - do the limits that surround the daemon hold what its own limits promise
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stddef.h>

struct dmn_config;

/** dmn_promises_check() - logs a warning, with keys and values, for each limit of the control group
 * or the process (memory, tasks, descriptors) that clients within limits.* could exceed. @cores: of
 * all EPs. */
void dmn_promises_check(const struct dmn_config *c, size_t cores);
