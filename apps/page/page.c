/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/page/page.h"

#include <math.h>

#include "base/shown_text.h"
#include "page_text.h"

#define LONG 24             /* characters of a text that needs a wide column */
#define NARROW 3            /* columns that fit on a phone */
#define DASH "\xe2\x80\x93" /* en dash */

bool page_has_charts(void)
{
    return page_chart_js[0] != '\0';
}

void page_text(FILE *to, const char *text)
{
    static const char *const entities[] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};
    size_t left = strlen(text), n;
    uint32_t c;

    for (; left > 0; text += n, left -= n) {
        n = shown_decode(text, left, &c);
        if (n == 0 || (shown_hidden(c) && c != '\n')) {
            fputs("&#xfffd;", to);
            n = n == 0 ? 1 : n;
        } else if (c < base_array_count(entities) && entities[c]) {
            fputs(entities[c], to);
        } else {
            fwrite(text, 1, n, to);
        }
    }
}

static void page_formatted(FILE *to, const char *format, va_list args)
{
    char *text = NULL;

    if (vasprintf(&text, format, args) >= 0) {
        page_text(to, text);
        free(text);
    }
}

void page_paragraph(FILE *to, const char *kind, const char *format, ...)
{
    va_list args;

    fprintf(to, "<p%s%s%s>", kind ? " class=\"" : "", kind ? kind : "", kind ? "\"" : "");
    va_start(args, format);
    page_formatted(to, format, args);
    va_end(args);
    fputs("</p>\n", to);
}

void page_heading(FILE *to, int level, const char *format, ...)
{
    va_list args;

    fprintf(to, "<h%d>", level);
    va_start(args, format);
    page_formatted(to, format, args);
    va_end(args);
    fprintf(to, "</h%d>\n", level);
}

/* ---- tables ---- */

static void write_number(FILE *to, const struct page_column *c, double v)
{
    v *= c->scale != 0 ? c->scale : 1;
    if (isfinite(v)) {
        fprintf(to, "%.*f", c->decimals, v);
    } else {
        fputs(DASH, to);
    }
}

static void write_value(FILE *to, const struct page_column *c, const json_t *v)
{
    if (c->kind == PAGE_TIME && json_string_length(v) > 19) {
        char day[11], clock[9];

        snprintf(day, sizeof(day), "%s", json_string_value(v));
        snprintf(clock, sizeof(clock), "%s", json_string_value(v) + 11);
        page_text(to, day);
        fputc(' ', to);
        page_text(to, clock);
    } else if (json_is_string(v) && json_string_length(v) > 0) {
        page_text(to, json_string_value(v));
    } else if (json_is_number(v)) {
        write_number(to, c, json_number_value(v));
    } else if (json_is_boolean(v)) {
        fputs(json_is_true(v) ? "yes" : "no", to);
    } else if (json_array_size(v) > 0) {
        json_text_each(v, i, one) {
            fputs(i ? ", " : "", to);
            write_value(to, c, one);
        }
    } else {
        fputs(DASH, to);
    }
}

static const char *class_of(const struct page_column *c, const json_t *v)
{
    return c->kind == PAGE_NUMBER         ? " class=\"n\""
           : c->kind == PAGE_TIME         ? " class=\"time\""
           : c->kind == PAGE_CODE         ? " class=\"code\""
           : json_string_length(v) > LONG ? " class=\"long\""
                                          : "";
}

/* A phone shows a row of many columns as a card, where each value needs its heading. */
static void write_row(FILE *to, const struct page_column *columns, bool card, const json_t *row)
{
    fputs("<tr>", to);
    for (const struct page_column *c = columns; c->heading; c++) {
        const json_t *v = json_text_at(row, c->path);

        fprintf(to, "<td%s", class_of(c, v));
        if (card) {
            fputs(" data-heading=\"", to);
            page_text(to, c->heading);
            fputc('"', to);
        }
        fputs(c->kind == PAGE_CODE ? "><code>" : ">", to);
        write_value(to, c, v);
        fputs(c->kind == PAGE_CODE ? "</code></td>" : "</td>", to);
    }
    fputs("</tr>\n", to);
}

void page_table(FILE *to, const char *caption, const struct page_column *columns,
                const json_t *rows)
{
    size_t count = 0;

    while (columns[count].heading) {
        count++;
    }
    fprintf(to, "<div class=\"wide\" tabindex=\"0\"><table%s><caption>",
            count > NARROW ? " class=\"cards\"" : "");
    page_text(to, caption);
    fputs("</caption><thead><tr>", to);
    for (const struct page_column *c = columns; c->heading; c++) {
        fprintf(to, "<th scope=\"col\"%s>", c->kind == PAGE_NUMBER ? " class=\"n\"" : "");
        page_text(to, c->heading);
        fputs("</th>", to);
    }
    fputs("</tr></thead><tbody>\n", to);
    json_text_each(rows, i, row) {
        write_row(to, columns, count > NARROW, row);
    }
    fputs("</tbody></table></div>\n", to);
}

/* ---- the frame ---- */

void page_contents(FILE *to, json_t *sections)
{
    fputs("<nav aria-label=\"Contents\"><ul>\n", to);
    json_text_each(sections, i, s) {
        fprintf(to, "<li><a href=\"#%s\">", json_string_value(json_object_get(s, "id")));
        page_text(to, json_string_value(json_object_get(s, "title")));
        fputs("</a></li>\n", to);
    }
    fputs("</ul></nav>\n", to);
    json_decref(sections);
}

void page_fold_begin(FILE *to, const char *id, bool open, const char *title)
{
    fputs("<details class=\"fold", to);
    if (id) {
        fprintf(to, " section\" id=\"%s", id);
    }
    fprintf(to, "\"%s><summary>%s", open ? " open" : "", id ? "<h2>" : "");
    page_text(to, title);
    fprintf(to, "%s</summary>\n", id ? "</h2>" : "");
}

void page_fold_end(FILE *to)
{
    fputs("</details>\n", to);
}

/* JSON has these characters only inside of texts, where they may be written so. Without them
 * nothing in it ends the element. */
static void write_json(FILE *to, const json_t *value)
{
    base_autofree char *text =
        json_text(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));

    for (const char *c = text ? text : "null"; *c; c++) {
        if (*c == '<' || *c == '>' || *c == '&') {
            fprintf(to, "\\u%04x", (unsigned)*c);
        } else {
            fputc(*c, to);
        }
    }
}

void page_data(FILE *to, const char *id, const json_t *value)
{
    fprintf(to, "<script type=\"application/json\" id=\"%s\">", id);
    write_json(to, value);
    fputs("</script>\n", to);
}

void page_begin(FILE *to, const char *title)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n<title>",
          to);
    page_text(to, title);
    fputs("</title>\n<style>\n", to);
    fputs(page_css, to);
    fputs("</style>\n<noscript><style>.canvas{display:none}</style></noscript>\n"
          "</head><body><main>\n<h1>",
          to);
    page_text(to, title);
    fputs("</h1>\n", to);
}

void page_end(FILE *to)
{
    fputs("</main>\n", to);
    if (page_has_charts()) {
        fputs("<script>\n", to);
        fputs(page_chart_js, to);
        fputs("\n</script>\n<script>\n", to);
        fputs(page_js, to);
        fputs("</script>\n", to);
    }
    fputs("</body></html>\n", to);
}
