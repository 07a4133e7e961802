/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/top/screen.h - a screen of text cells, which a terminal or plain text shows
 *
 * Pure. Whatever text comes here, only printable characters reach a cell: control characters,
 * bytes that are not UTF-8 and characters without a width become '?'. A wide character has two
 * cells, the second of which is empty (0). Text ends at the right border.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

enum top_look { TOP_PLAIN, TOP_BOLD, TOP_FAINT, TOP_TITLE, TOP_GOOD, TOP_WARN, TOP_BAD };

struct top_cell {
    wchar_t c; /* 0: the second half of a wide character */
    enum top_look look;
};

struct top_screen {
    size_t rows, columns, row, column; /* row and column: where the next text goes */
    bool ascii;                        /* bars and curves of ASCII; other characters become '?' */
    struct top_cell *cells;            /* owned: row after row */
};
#define TOP_SCREEN_NULL ((struct top_screen){0})

/** top_screen_init() - an empty screen. Return: 0; -ENOMEM. */
int top_screen_init(struct top_screen *s, size_t rows, size_t columns, bool ascii);
void top_screen_deinit(struct top_screen *s);
void top_screen_clear(struct top_screen *s);
/** top_screen_copy() - copies @count rows of @from, which is as wide, to row @to of @s. */
void top_screen_copy(struct top_screen *s, size_t to, const struct top_screen *from, size_t first,
                     size_t count);
/** top_screen_used() - Return: the number of rows up to the last one that is not empty. */
size_t top_screen_used(const struct top_screen *s);
/** top_screen_print() - writes the rows in use as text, without blanks at their ends. */
void top_screen_print(const struct top_screen *s, FILE *to);

/** top_line() - the next text goes to the start of the next row. */
void top_line(struct top_screen *s);
void top_put(struct top_screen *s, enum top_look look, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** top_put_field() - puts @text into exactly @width cells; what is too long ends in '~'. */
void top_put_field(struct top_screen *s, enum top_look look, const char *text, size_t width,
                   bool right);
/** top_put_bar() - puts a bar of @width cells for @share, 0 to 1; NAN: blank. */
void top_put_bar(struct top_screen *s, enum top_look look, double share, size_t width);
/** top_put_curve() - puts a cell a value, as high as its share of @most; NAN: blank. */
void top_put_curve(struct top_screen *s, enum top_look look, const double *values, size_t count,
                   double most);
/** top_width() - Return: how many cells @text takes. */
size_t top_width(const struct top_screen *s, const char *text);

/*
 * ---- table.c: a table that fits its screen ----
 *
 * Columns are as wide as they need to be. A column without any value is left out; if the others are
 * too wide together, those that matter least are left out, too. A table without rows is not drawn.
 */

#define TOP_COLUMNS_MAX 12u
#define TOP_TEXT_MAX 200u /* bytes of a cell */

struct top_column {
    const char *heading; /* "": it shares the heading of the column before, one blank away */
    char align;          /* 'l', 'r', or 'b': bars */
    unsigned drop;       /* the highest goes first; 0: never */
};

struct top_table_cell {
    char text[TOP_TEXT_MAX];
    enum top_look look;
    double share; /* of a bar */
};

/* Begins with its columns. */
struct top_table {
    const struct top_column *columns; /* borrowed: @count of them, at most TOP_COLUMNS_MAX */
    size_t count, used, room;         /* columns; cells in use and allocated */
    struct top_table_cell *cells;     /* owned: row after row */
};

/** top_table_text() - adds the next cell of the row, or of the next row. */
void top_table_text(struct top_table *t, enum top_look look, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** top_table_value() - adds a number; "-" if it is NAN. @format: for one double. */
void top_table_value(struct top_table *t, enum top_look look, const char *format, double value)
    __attribute__((format(printf, 3, 0)));
void top_table_bar(struct top_table *t, enum top_look look, double share);
/** top_table_draw() - draws headings and rows, each with top_line() after it, and frees all. */
void top_table_draw(struct top_table *t, struct top_screen *s);
