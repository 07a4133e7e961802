/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ipc/json_memory.h - JSON while memory lacks: read without harm, and neither sent nor kept in part
 *
 * An object whose key could not be set, or a list whose element could not be appended, is still an
 * object or a list. Code that builds large answers does not ask after each step. Instead, the
 * process's allocator for JSON notes each failure, and whoever sends or keeps the result asks once.
 * A failure may thereby also refuse what was built whole at the same moment.
 *
 * Jansson 2.14 ignores that the text of a string which it reads could not grow, and then writes
 * behind the end of it. So where malloc() fails, the allocator has a reserve, which is larger than
 * the largest message needs.
 *
 * State of the process: one flag, one reserve. Threads: any.
 */
#pragma once

#include <stdbool.h>

/** ipc_json_setup() - before the first JSON and the first thread. */
void ipc_json_setup(void);
/** ipc_json_begin() - forgets what failed before. */
void ipc_json_begin(void);
/** ipc_json_lacked() - Return: an allocation for JSON failed since ipc_json_begin(). */
bool ipc_json_lacked(void);
