/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: in place of curses.c in a build without ncurses. */
#include <errno.h>

#include "apps/pipectl/top/live.h"

const char *top_terminal_there(void)
{
    return "pipectl was built without ncurses (meson option ncurses)";
}

int top_terminal_open(void)
{
    return -ENOTSUP;
}

void top_terminal_close(void)
{
}

void top_terminal_size(size_t *ret_rows, size_t *ret_columns)
{
    *ret_rows = *ret_columns = 0;
}

void top_terminal_show(const struct top_screen *s, bool whole)
{
}

int top_terminal_key(void)
{
    return TOP_KEY_NONE;
}
