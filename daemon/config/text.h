/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/text.h - JSON with comments: removes them, and finds the line of a value
 *
 * Threads: any, no state.
 */
#pragma once

#include <stddef.h>

/** dmn_config_strip() - overwrites comments outside strings with blanks; line numbers stay. @text:
 * [bytes], may hold anything. */
void dmn_config_strip(char *text, size_t bytes);
/**
 * dmn_config_line() - the line (from 1) where the value of a path such as "limits.streams" or
 * "models[2].path" starts
 *
 * @text: valid JSON, NUL-terminated, comments stripped
 *
 * Return: the line; of the deepest part found if the whole path does not exist.
 */
size_t dmn_config_line(const char *text, const char *path);
