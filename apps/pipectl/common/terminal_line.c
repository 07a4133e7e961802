/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/pipectl/common/terminal_line.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/shown_text.h"

#define COLUMNS 80u
#define WIPE "\r\033[K"

static bool there;

static size_t columns(void)
{
    struct winsize w;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col : COLUMNS;
}

void ctl_line_show(char *text)
{
    size_t most = columns() - 1, seen = 0, at = 0;

    if (!isatty(STDERR_FILENO)) {
        return;
    }
    shown_clean(text, "");
    /* as many characters as fit before the terminal would wrap the line */
    while (text[at] && seen < most) {
        seen++;
        for (at++; (text[at] & 0xc0) == 0x80; at++) {
        }
    }
    fprintf(stderr, WIPE "%.*s", (int)at, text);
    fflush(stderr);
    there = true;
}

void ctl_line_wipe(void)
{
    if (there) {
        fputs(WIPE, stderr);
        there = false;
    }
}
