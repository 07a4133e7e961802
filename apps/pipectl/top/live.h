/* SPDX-License-Identifier: Apache-2.0 */
/** live.h - pipectl top in a terminal, which shows a screen of cells and reads keys */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apps/pipectl/top/screen.h"

struct ctl;
struct ctl_options;

/** top_live() - live.c, or live_none.c: until a key or signal ends it. @ascii: the terminal shows
 * nothing else. Return: an exit code. A signal that ends it ends the program, too. */
int top_live(const struct ctl *ctl, const struct ctl_options *o, bool ascii);

/* ---- curses.c: the terminal ---- */

enum top_key {
    TOP_KEY_NONE = 0, /* other keys: their character */
    TOP_KEY_RESIZE = 0x110000,
    TOP_KEY_UP,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
};

/** top_terminal_open() - takes the terminal of stdin and stdout. Return: 0; -ENOTSUP: its type is
 * not known. */
int top_terminal_open(void);
/** top_terminal_close() - gives it back as it was; may be called twice. */
void top_terminal_close(void);
void top_terminal_size(size_t *ret_rows, size_t *ret_columns);
/** top_terminal_show() - @whole: the terminal may have lost what it shows; write all of it. */
void top_terminal_show(const struct top_screen *s, bool whole);
/** top_terminal_key() - Return: the next key, or TOP_KEY_NONE; never waits. */
int top_terminal_key(void);
