/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/service/sockets.h - the runtime and state folders
 *
 * Threads: any.
 */
#pragma once

#include <stdbool.h>

/** dmn_runtime_dir() - finds or makes the folder of the sockets: @given, else /run/piped if
 * writable, else $XDG_RUNTIME_DIR/piped. Return: owned; NULL with errno. */
char *dmn_runtime_dir(const char *given);
/** dmn_state_dir() - finds the state folder, and makes it if @make: @given, else $STATE_DIRECTORY,
 * else /var/lib/piped if writable, else piped/ in $XDG_STATE_HOME or ~/.local/state. Return: owned;
 * NULL with errno: none. */
char *dmn_state_dir(const char *given, bool make);
