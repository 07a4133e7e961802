/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl top: tables. */
#include <assert.h>
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "apps/pipectl/top/top.h"

#define BAR_CELLS 10u
#define LEFT_MAX 26u /* cells of a text that is not in the last column */

static struct top_table_cell *next(struct top_table *t)
{
    if (!base_room(&t->cells, sizeof(*t->cells), t->used, &t->room)) {
        return NULL;
    }
    t->cells[t->used] = (struct top_table_cell){.share = NAN};
    return &t->cells[t->used++];
}

void top_table_text(struct top_table *t, enum top_look look, const char *format, ...)
{
    struct top_table_cell *c = next(t);
    va_list args;

    if (c) {
        va_start(args, format);
        vsnprintf(c->text, sizeof(c->text), format, args);
        va_end(args);
        c->look = look;
    }
}

void top_table_value(struct top_table *t, enum top_look look, const char *format, double value)
{
    top_table_text(t, look, "%s", ctl_format(value, format).text);
}

void top_table_bar(struct top_table *t, enum top_look look, double share)
{
    struct top_table_cell *c = next(t);

    if (c) {
        c->look = look;
        c->share = share;
    }
}

/* 0: the column is left out. */
static void find_widths(const struct top_table *t, const struct top_screen *s, size_t rows,
                        size_t ret[TOP_COLUMNS_MAX])
{
    for (size_t c = 0; c < t->count; c++) {
        const struct top_column *column = &t->columns[c];
        bool known = false;

        ret[c] = column->align == 'b' ? BAR_CELLS : top_width(s, column->heading);
        for (size_t r = 0; r < rows; r++) {
            const struct top_table_cell *cell = &t->cells[r * t->count + c];
            size_t width = top_width(s, cell->text);

            known |= !isnan(cell->share) || (cell->text[0] && strcmp(cell->text, "-") != 0);
            if (column->align == 'l' && c + 1 < t->count) {
                width = base_min(width, LEFT_MAX + 0ul);
            }
            ret[c] = base_max(ret[c], width);
        }
        ret[c] = known ? ret[c] : 0;
    }
}

/* A column without a heading has that of the column before, if that one is left out. */
static const char *heading_of(const struct top_table *t, const size_t *width, size_t c)
{
    return t->columns[c].heading[0] || c == 0 || width[c - 1] ? t->columns[c].heading
                                                              : t->columns[c - 1].heading;
}

static size_t gap(const struct top_table *t, const size_t *width, size_t c)
{
    return c == 0 ? 0 : heading_of(t, width, c)[0] ? 2 : 1;
}

static size_t all_of(const struct top_table *t, const size_t *width)
{
    size_t all = 0;

    for (size_t c = 0; c < t->count; c++) {
        all += width[c] ? width[c] + gap(t, width, c) : 0;
    }
    return all;
}

static void drop_columns(const struct top_table *t, size_t columns, size_t *width)
{
    for (;;) {
        size_t worst = t->count;

        for (size_t c = 0; c < t->count; c++) {
            if (width[c] && t->columns[c].drop > 0 &&
                (worst == t->count || t->columns[c].drop > t->columns[worst].drop)) {
                worst = c;
            }
        }
        if (worst == t->count || all_of(t, width) <= columns) {
            return;
        }
        width[worst] = 0;
        if (worst + 1 < t->count && width[worst + 1] && !t->columns[worst + 1].heading[0]) {
            width[worst + 1] =
                base_max(width[worst + 1], strlen(t->columns[worst].heading)); /* it is its now */
        }
    }
}

/* @cells: a row; NULL: the headings. */
static void draw_row(const struct top_table *t, struct top_screen *s,
                     const struct top_table_cell *cells, const size_t *width)
{
    for (size_t c = 0, drawn = 0; c < t->count; c++) {
        const struct top_column *column = &t->columns[c];
        size_t room = s->columns - base_min(s->column, s->columns);

        if (!width[c] || room == 0) {
            continue;
        }
        if (drawn++ > 0) {
            top_put(s, cells ? TOP_PLAIN : TOP_TITLE, "%*s", (int)gap(t, width, c), "");
            room -= base_min(room, gap(t, width, c));
        }
        if (cells && column->align == 'b') {
            top_put_bar(s, cells[c].look, cells[c].share, base_min(width[c], room));
        } else {
            top_put_field(s, cells ? cells[c].look : TOP_TITLE,
                          cells ? cells[c].text : heading_of(t, width, c), base_min(width[c], room),
                          column->align == 'r');
        }
    }
    top_line(s);
}

void top_table_draw(struct top_table *t, struct top_screen *s)
{
    size_t width[TOP_COLUMNS_MAX], rows = t->count ? t->used / t->count : 0;

    assert(t->count <= TOP_COLUMNS_MAX);
    if (rows > 0) {
        find_widths(t, s, rows, width);
        drop_columns(t, s->columns, width);
        draw_row(t, s, NULL, width);
    }
    for (size_t r = 0; r < rows; r++) {
        draw_row(t, s, t->cells + r * t->count, width);
    }
    free(t->cells);
    *t = (struct top_table){0};
}
