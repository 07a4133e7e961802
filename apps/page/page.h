/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/page/page.h - one HTML page that needs nothing else: for pipectl report and pipesim report
 *
 * A page has contents, sections that fold, headings, paragraphs, tables and charts. A chart is a
 * JSON object. It stands in the page as it is, Chart.js draws it, and its figures follow as a
 * table, so that the page can be read without JavaScript. In a build without Chart.js the tables
 * stand alone.
 *
 * Whatever comes from outside (names, reasons, plans) is escaped here. Nothing is kept, and errors
 * of writing are those of the stream. JSON references are taken where a comment says so.
 */
#pragma once

#include "base/json_text.h"

/** page_has_charts() - Return: false in a build without Chart.js. */
bool page_has_charts(void);
/** PAGE_NO_CHARTS - what is missing then, for a message. */
#define PAGE_NO_CHARTS                                                                             \
    "the page has tables only: this build has no Chart.js (install "                               \
    "libjs-chart.js, then build with -Dreport=enabled)"

/** page_begin() - everything up to the heading. page_end() closes the page and adds the scripts. */
void page_begin(FILE *to, const char *title);
void page_end(FILE *to);

/** page_text() - writes text, escaped; control characters become U+FFFD. */
void page_text(FILE *to, const char *text);
/** page_paragraph() - a paragraph of plain text. @kind: its class, such as "quiet"; NULL: none. */
void page_paragraph(FILE *to, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** page_heading() - a heading of plain text. @level: 2 or 3. */
void page_heading(FILE *to, int level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** page_contents() - links to sections, {id, title} each. Takes the reference @sections. */
void page_contents(FILE *to, json_t *sections);
/**
 * page_fold_begin() - begins what folds under its title
 * @id: of our own, what a link of the contents leads to: the title is a heading of level 2; NULL:
 *      it is a part of a section, under a small title     @open: unfolded at first
 *
 * A link to it unfolds it, and paper shows it unfolded. page_fold_end() ends it.
 */
void page_fold_begin(FILE *to, const char *id, bool open, const char *title);
void page_fold_end(FILE *to);
/** page_data() - the JSON @value as an element that is not shown. @id: of our own, not escaped. */
void page_data(FILE *to, const char *id, const json_t *value);

/* A column of a table: what to show of each object. */
struct page_column {
    const char *heading;
    const char *path; /* key, or keys with dots between, of the object */
    enum { PAGE_TEXT, PAGE_CODE, PAGE_NUMBER, PAGE_TIME } kind;
    int decimals; /* PAGE_NUMBER */
    double scale; /* the number is multiplied by it; 0: by 1 */
};
/** page_table() - a table with a row for each object of @rows. Lists become texts with commas; what
 * is missing or null becomes a dash. A time as in
 * "2026-03-01T10:20:30.123Z" is shortened. @columns: a NULL heading ends them. */
void page_table(FILE *to, const char *caption, const struct page_column *columns,
                const json_t *rows);

/**
 * page_chart() - a chart and its figures; nothing if it has no point and no value. Takes the
 * reference @chart.
 *
 * @chart has these keys; those in brackets may be missing:
 * - id: of the element, of our own; title: a sentence; kind: "lines", "bars" or "spans"
 * - x, y: {label, [log], [min], [max], [whole]}; bars: x has names, one for
 *   each group; spans: y has names; lines: y may have names, whose numbers the points have
 * - series: [{name, [colour], ...}]; name null: not in the legend; colour: its number in the
 *   palette, by default that of its place in the list
 *   - lines: points [[x, y, [note]]]; [steps]: the value holds until the next point; [dashed];
 *     [marks]: only points; [large]: of these, the index of one to stand out
 *   - bars: values, one for each name, null: none
 *   - spans: points [[from, to, NAME, note]]
 * - [stacked], [across] (horizontal) of bars; [last]: the table has the last point of each series
 */
void page_chart(FILE *to, json_t *chart);
/** page_new() - Return: new: a chart without series. Takes the references @x and @y. */
json_t *page_new(const char *id, const char *title, const char *kind, json_t *x, json_t *y);
/** page_add() - adds a series to the chart. Takes the reference @series. */
void page_add(json_t *chart, json_t *series);
/** page_axis() - Return: new: an axis. @min, @max: NAN: as the values are. */
json_t *page_axis(const char *label, bool log, double min, double max);
/** page_names() - Return: new: an axis of names. */
json_t *page_names(const char *label, const char *const *names, size_t count);
/** page_series() - Return: new: lines with these points. @name: NULL: not in the legend. Takes the
 * reference @points. */
json_t *page_series(const char *name, json_t *points);
/** page_lines() - adds page_series() to @chart, unless it has no point. @how: further keys, or
 * NULL. Takes the references @points and @how. */
void page_lines(json_t *chart, const char *name, json_t *points, json_t *how);
/** page_bars() - Return: new: a series of bars. Takes the reference @values. */
json_t *page_bars(const char *name, json_t *values);
/** page_point() - adds a point to @points, unless it has a NAN. @note: NULL: none. */
void page_point(json_t *points, double x, double y, const char *note);
