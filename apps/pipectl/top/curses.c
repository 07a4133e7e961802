/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: the terminal, by ncurses. */
#define _XOPEN_SOURCE_EXTENDED 1
#include <curses.h>
#include <errno.h>
#include <stdlib.h>

#include "apps/pipectl/top/top.h"

static SCREEN *terminal;

static void open_colours(void)
{
    if (has_colors() && start_color() == OK) {
        use_default_colors();
        init_pair(TOP_GOOD, COLOR_GREEN, -1);
        init_pair(TOP_WARN, COLOR_YELLOW, -1);
        init_pair(TOP_BAD, COLOR_RED, -1);
    }
}

int top_terminal_open(void)
{
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        return -ENOTSUP;
    }
    set_term(terminal);
    cbreak();
    noecho();
    nonl();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    open_colours();
    return 0;
}

void top_terminal_close(void)
{
    if (terminal) {
        endwin();
        delscreen(terminal);
        terminal = NULL;
    }
}

void top_terminal_size(size_t *ret_rows, size_t *ret_columns)
{
    *ret_rows = LINES > 0 ? (size_t)LINES : 0;
    *ret_columns = COLS > 0 ? (size_t)COLS : 0;
}

static attr_t attribute(enum top_look look, short *ret_pair)
{
    static const attr_t looks[] = {
        [TOP_PLAIN] = A_NORMAL,    [TOP_BOLD] = A_BOLD,   [TOP_FAINT] = A_DIM,
        [TOP_TITLE] = A_UNDERLINE, [TOP_GOOD] = A_NORMAL, [TOP_WARN] = A_NORMAL,
        [TOP_BAD] = A_BOLD};

    *ret_pair = look >= TOP_GOOD && has_colors() ? (short)look : 0;
    return looks[look];
}

void top_terminal_show(const struct top_screen *s, bool whole)
{
    if (whole) {
        clearok(stdscr, TRUE);
    }
    erase();
    for (size_t row = 0; row < s->rows; row++) {
        for (size_t column = 0; column < s->columns; column++) {
            const struct top_cell *cell = &s->cells[row * s->columns + column];
            wchar_t text[2] = {cell->c, 0};
            cchar_t c;
            short pair;
            attr_t a = attribute(cell->look, &pair);

            /* Blanks are there; a wide character fills its second cell. */
            if (cell->c && (cell->c != L' ' || a != A_NORMAL) &&
                setcchar(&c, text, a, pair, NULL) == OK) {
                mvadd_wch((int)row, (int)column, &c);
            }
        }
    }
    refresh();
}

int top_terminal_key(void)
{
    static const struct {
        int curses, key;
    } keys[] = {{KEY_RESIZE, TOP_KEY_RESIZE},  {KEY_UP, TOP_KEY_UP},
                {KEY_DOWN, TOP_KEY_DOWN},      {KEY_LEFT, TOP_KEY_LEFT},
                {KEY_RIGHT, TOP_KEY_RIGHT},    {KEY_PPAGE, TOP_KEY_PAGE_UP},
                {KEY_NPAGE, TOP_KEY_PAGE_DOWN}};
    int c = getch();

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (c == keys[i].curses) {
            return keys[i].key;
        }
    }
    return c == ERR ? TOP_KEY_NONE : c;
}
