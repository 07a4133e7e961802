/* SPDX-License-Identifier: Apache-2.0 */
/** terminal_line.h - a line on a terminal (stderr) that says how far something is */
#pragma once

/** ctl_line_show() - overwrites the line. @text: what a terminal must not get becomes '?', and what
 * does not fit is left out. Nothing where stderr is no terminal. */
void ctl_line_show(char *text);
/** ctl_line_wipe() - takes the line away; nothing if there is none. */
void ctl_line_wipe(void);
