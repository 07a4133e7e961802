/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/top/top.h - the parts of pipectl top */
#pragma once

#include <wchar.h>

#include "base/json_text.h"

/*
 * ---- model.c: rates and series from one status to the next ----
 *
 * Pure: no terminal, no socket, no clock of its own. A rate is unknown (NAN) if a counter began
 * again between two answers: the daemon was restarted, the model was loaded again, or its route
 * changed. Nothing negative is ever shown.
 */

#define TOP_SECONDS 60u /* of a series */
#define TOP_MODELS_MAX 64u

/* Counters of a model, and of its route over boards. */
enum top_counter {
    TOP_ADMITTED,
    TOP_ANSWERED,
    TOP_DROPPED,
    TOP_FAILED,
    TOP_ROUTE_SENT,     /* to other boards */
    TOP_ROUTE_RESENT,   /* sent again, after a board went away */
    TOP_ROUTE_RETURNED, /* computed here after all */
    TOP_ROUTE_HERE,     /* all that were wholly computed here */
    TOP_COUNTERS,
};

/* Where a counter is in a model's status. */
struct top_counter_place {
    const char *object, *key;
};
extern const struct top_counter_place top_counters[TOP_COUNTERS];

/* One second of the clock: how much of it was seen, and how many frames were answered in it. */
struct top_second {
    uint64_t second;
    double seen, answered;
};

struct top_model {
    char *name;                                     /* owned */
    double count[TOP_COUNTERS], rate[TOP_COUNTERS]; /* NAN: unknown; rates: a second */
    struct top_second seconds[TOP_SECONDS];         /* second S is at S % TOP_SECONDS */
    bool there;                                     /* in the newest status */
};

struct top {
    json_t *status; /* owned: the newest; NULL: none yet */
    uint64_t at_ns; /* of the newest */
    struct top_model models[TOP_MODELS_MAX];
    size_t model_count;
};
#define TOP_NULL ((struct top){0})

/** top_deinit() - frees all; may be called twice. */
void top_deinit(struct top *t);
/**
 * top_take() - takes the next status
 *
 * @status: of the method Status, read at @now_ns, later than the last one; a new reference is
 * taken. Rates are by the daemon's own clock, uptime_s: answers may be late. A model that was away
 * for a series' length is forgotten.
 */
void top_take(struct top *t, json_t *status, uint64_t now_ns);
/** top_find() - Return: what is known of the model; NULL: nothing. */
const struct top_model *top_find(const struct top *t, const char *name);
/** top_status_of() - Return: the model in the newest status, borrowed; NULL: it is not there. */
const json_t *top_status_of(const struct top *t, const char *name);
/** top_series() - frames answered in each of the last TOP_SECONDS seconds, oldest first; NAN:
 * unknown. @m: NULL for all unknown. */
void top_series(const struct top_model *m, uint64_t now_ns, double ret[TOP_SECONDS]);
/** top_off() - by which share @measured is above @expected; NAN: one of them is unknown. */
double top_off(double measured, double expected);

enum top_sort { TOP_BY_ORDER, TOP_BY_LOAD, TOP_BY_TIME, TOP_SORTS };
/**
 * top_sorted() - the objects of an array in another order, highest first
 *
 * @list: an array of objects, or NULL. @load, @time: the keys to sort by; "a.b" is key b of the
 * object a. Unknown values are last; equal ones keep their order. Return: a new array.
 */
json_t *top_sorted(const json_t *list, enum top_sort by, const char *load, const char *time);

/*
 * ---- screen.c: a screen of text cells, which a terminal or plain text shows ----
 *
 * Pure. Whatever text comes here, only printable characters reach a cell: control characters,
 * bytes that are not UTF-8 and characters without a width become '?'. A wide character has two
 * cells, the second of which is empty (0). Text ends at the right border.
 */

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

/* ---- view.c and others: draw what is known on a screen. Pure. ---- */

enum top_page { TOP_PAGE_MODEL, TOP_PAGE_UNITS, TOP_PAGE_DECISIONS, TOP_PAGE_HELP };

struct top_view {
    const struct top *top;
    const json_t *events, *units, *explanation; /* replies' fields; NULL: not known */
    const char *model;                          /* the one that is shown; NULL: none */
    const char *notice;                         /* instead of the daemon's state; NULL: none */
    enum top_page page;
    enum top_sort sort;
    bool all;      /* every model, and no keys: for --once */
    size_t scroll; /* rows; top_draw() lowers it to what makes sense */
    uint64_t now_ns;
};

/** top_draw() - draws all of @s anew. */
void top_draw(struct top_view *v, struct top_screen *s);

/* Sections, drawn from where @s is; each row ends with top_line(). @model: its status. */

/* view_model.c */
void top_draw_model(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_models(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_mix(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_stages(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_units(const struct top_view *v, struct top_screen *s, const json_t *model);
/* view_boards.c */
void top_draw_route(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_boards(const struct top_view *v, struct top_screen *s, const json_t *model);
/* view_machine.c */
void top_draw_clocks(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_machine(const struct top_view *v, struct top_screen *s, const json_t *model);
void top_draw_decisions(const struct top_view *v, struct top_screen *s, const json_t *model);

/** top_look_of_off() - bad from 0.5 on, warn from 0.2 on; NAN: plain. */
enum top_look top_look_of_off(double off);

/* ---- live.c, or live_none.c: in a terminal ---- */

struct ctl;
struct ctl_options;

/** top_live() - until a key or signal ends it. @ascii: the terminal shows
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
