/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "apps/page/page.h"

#define LONG 24             /* characters of a text that needs a wide column */
#define NARROW 3            /* columns that fit on a phone */
#define DASH "\xe2\x80\x93" /* en dash */

const json_t *page_at(const json_t *object, const char *path)
{
    for (const char *end; object && *path; path = *end ? end + 1 : end) {
        char key[64];

        end = path + strcspn(path, ".");
        snprintf(key, sizeof(key), "%.*s", (int)(end - path), path);
        object = json_object_get(object, key);
    }
    return object;
}

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
    const json_t *one;
    size_t i;

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
        json_array_foreach(v, i, one)
        {
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
        const json_t *v = page_at(row, c->path);

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
    const json_t *row;
    size_t i, count = 0;

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
    json_array_foreach(rows, i, row)
    {
        write_row(to, columns, count > NARROW, row);
    }
    fputs("</tbody></table></div>\n", to);
}
