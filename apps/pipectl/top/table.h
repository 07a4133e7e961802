/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/pipectl/top/table.h - a table that fits its screen
 *
 * Columns are as wide as they need to be. A column without any value is left out; if the others are
 * too wide together, those that matter least are left out, too. A table without rows is not drawn.
 */
#pragma once

#include "apps/pipectl/top/screen.h"

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

struct top_table {
    const struct top_column *columns; /* borrowed */
    size_t count, used, room;         /* columns; cells in use and allocated */
    struct top_table_cell *cells;     /* owned: row after row */
};

/** top_table_init() - @columns: at most TOP_COLUMNS_MAX. */
void top_table_init(struct top_table *t, const struct top_column *columns, size_t count);
/** top_table_text() - adds the next cell of the row, or of the next row. */
void top_table_text(struct top_table *t, enum top_look look, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** top_table_value() - adds a number; "-" if it is NAN. @format: for one double. */
void top_table_value(struct top_table *t, enum top_look look, const char *format, double value)
    __attribute__((format(printf, 3, 0)));
void top_table_bar(struct top_table *t, enum top_look look, double share);
/** top_table_draw() - draws headings and rows, each with top_line() after it, and frees all. */
void top_table_draw(struct top_table *t, struct top_screen *s);
