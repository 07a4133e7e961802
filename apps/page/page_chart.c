/* SPDX-License-Identifier: Apache-2.0 */
/* A chart: what Chart.js draws, and the table of its figures. */
#include <math.h>

#include "apps/page/page.h"

static void write_cell(FILE *to, const json_t *v)
{
    fputs(json_is_number(v) ? "<td class=\"n\">" : "<td>", to);
    if (json_is_number(v)) {
        fprintf(to, "%.6g", json_number_value(v));
    } else {
        page_text(to, json_is_string(v) ? json_string_value(v) : "\xe2\x80\x93");
    }
    fputs("</td>", to);
}

static void write_heading(FILE *to, const char *text, bool number)
{
    fprintf(to, "<th scope=\"col\"%s>", number ? " class=\"n\"" : "");
    page_text(to, text);
    fputs("</th>", to);
}

/* A row for each name, a column for each series. */
static void bars(FILE *to, const json_t *chart)
{
    const json_t *series = json_object_get(chart, "series");

    fputs("<thead><tr>", to);
    write_heading(to, json_text_of(json_object_get(chart, "x"), "label"), false);
    json_text_each(series, k, s) {
        write_heading(to, json_text_of(s, "name"), true);
    }
    fputs("</tr></thead><tbody>\n", to);
    json_text_each(json_text_at(chart, "x.names"), i, name) {
        fputs("<tr>", to);
        write_cell(to, name);
        json_text_each(series, k, s) {
            write_cell(to, json_array_get(json_object_get(s, "values"), i));
        }
        fputs("</tr>\n", to);
    }
}

/* How many cells the longest point has. */
static size_t widest(const json_t *chart)
{
    size_t most = 2;

    json_text_each(json_object_get(chart, "series"), i, s) {
        json_text_each(json_object_get(s, "points"), k, p) {
            most = json_array_size(p) > most ? json_array_size(p) : most;
        }
    }
    return most;
}

/* A row for each point. */
static void points(FILE *to, const json_t *chart)
{
    bool spans = strcmp(json_text_of(chart, "kind"), "spans") == 0;
    bool last = json_is_true(json_object_get(chart, "last"));
    size_t cells = widest(chart);

    fputs("<thead><tr>", to);
    if (!spans) {
        write_heading(to, "series", false);
    }
    write_heading(to, json_text_of(json_object_get(chart, "x"), spans ? "from" : "label"), true);
    write_heading(
        to, json_text_of(json_object_get(chart, spans ? "x" : "y"), spans ? "to" : "label"), true);
    for (size_t k = 2; k < cells; k++) {
        write_heading(to,
                      spans && k == 2 ? json_text_of(json_object_get(chart, "y"), "label") : "what",
                      false);
    }
    fputs("</tr></thead><tbody>\n", to);
    json_text_each(json_object_get(chart, "series"), i, s) {
        const json_t *list = json_object_get(s, "points");

        json_text_each(list, k, p) {
            if (last && k + 1 < json_array_size(list)) {
                continue;
            }
            fputs("<tr>", to);
            if (!spans) {
                write_cell(to, json_object_get(s, "name"));
            }
            for (size_t c = 0; c < cells; c++) {
                write_cell(to, json_array_get(p, c));
            }
            fputs("</tr>\n", to);
        }
    }
}

/* Has a series anything to draw? */
static bool has_something(const json_t *series)
{
    json_text_each(json_object_get(series, "values"), i, v) {
        if (json_is_number(v)) {
            return true;
        }
    }
    return json_array_size(json_object_get(series, "points")) > 0;
}

static void write_chart(FILE *to, const json_t *chart)
{
    const char *id = json_text_of(chart, "id"), *title = json_text_of(chart, "title");
    char data[96];

    fprintf(to, "<figure id=\"%s\"><figcaption>", id);
    page_text(to, title);
    fputs("</figcaption>\n", to);
    if (page_has_charts()) {
        fputs("<div class=\"canvas\"><canvas role=\"img\" aria-label=\"", to);
        page_text(to, title);
        fputs("; the figures follow as a table\"></canvas></div>\n", to);
    }
    snprintf(data, sizeof(data), "%s-data", id);
    page_data(to, data, chart);
    fprintf(to,
            "<details%s><summary>the figures as a table</summary><div class=\"wide\" "
            "tabindex=\"0\"><table>",
            page_has_charts() ? "" : " open");
    if (strcmp(json_text_of(chart, "kind"), "bars") == 0) {
        bars(to, chart);
    } else {
        points(to, chart);
    }
    fputs("</tbody></table></div></details></figure>\n", to);
}

void page_chart(FILE *to, json_t *chart)
{
    bool some = false;

    json_text_each(json_object_get(chart, "series"), i, s) {
        some |= has_something(s);
    }
    if (some) {
        write_chart(to, chart);
    }
    json_decref(chart);
}

json_t *page_new(const char *id, const char *title, const char *kind, json_t *x, json_t *y)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:[]}", "id", id, "title", title, "kind", kind, "x",
                     x, "y", y, "series");
}

void page_add(json_t *chart, json_t *series)
{
    json_array_append_new(json_object_get(chart, "series"), series);
}

json_t *page_names(const char *label, const char *const *names, size_t count)
{
    return json_pack("{s:s, s:o}", "label", label, "names", json_text_list(names, count));
}

json_t *page_bars(const char *name, json_t *values)
{
    return json_pack("{s:s, s:o}", "name", name, "values", values);
}

json_t *page_axis(const char *label, bool log, double min, double max)
{
    json_t *axis = json_pack("{s:s, s:b}", "label", label, "log", log);

    if (isfinite(min)) {
        json_object_set_new(axis, "min", json_real(min));
    }
    if (isfinite(max)) {
        json_object_set_new(axis, "max", json_real(max));
    }
    return axis;
}

json_t *page_series(const char *name, json_t *list)
{
    return json_pack("{s:s?, s:o}", "name", name, "points", list);
}

void page_point(json_t *list, double x, double y, const char *note)
{
    if (isfinite(x) && isfinite(y)) {
        json_t *p = json_pack("[f, f]", x, y);

        if (note) {
            json_array_append_new(p, json_string(note));
        }
        json_array_append_new(list, p);
    }
}

void page_lines(json_t *chart, const char *name, json_t *points, json_t *how)
{
    json_t *s = page_series(name, points);

    json_object_update(s, how);
    if (json_array_size(points) > 0) {
        json_array_append(json_object_get(chart, "series"), s);
    }
    json_decref(how);
    json_decref(s);
}
