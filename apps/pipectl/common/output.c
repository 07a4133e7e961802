/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl: prints JSON, tables and text. */
#include <math.h>

#include "apps/pipectl/common/output.h"
#include "base/base.h"
#include "base/cli/cli_print.h"
#include "base/cli/cli_rows.h"
#include "base/cli/shown_print.h"
#include "base/shown_text.h"

#define COLUMNS_MAX 16

void ctl_print_json(const json_t *v)
{
    json_text_print(v, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY);
    putchar('\n');
}

void ctl_print_new(json_t *v)
{
    ctl_print_json(v);
    json_decref(v);
}

void ctl_print_note(const json_t *verdict)
{
    const char *note = json_text_of(verdict, "note");

    if (*note) {
        shown_printf("  %s\n", note);
    }
}

void ctl_table_init(struct ctl_table *t, const char *const *headings, const char *align)
{
    *t = (struct ctl_table){.headings = headings, .align = align, .rows = json_array()};
    while (headings[t->columns]) {
        t->columns++;
    }
}

void ctl_table_add(struct ctl_table *t, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    cli_add_row(t->rows, format, args);
    va_end(args);
}

void ctl_table_note(struct ctl_table *t, int indent, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    if (n >= 0) {
        shown_clean(text, "");
        json_array_append_new(t->rows, json_pack("{s:i, s:s}", "indent", indent, "text", text));
        free(text);
    }
}

void ctl_print_wrapped(const char *text, int indent)
{
    cli_print_wrapped(stdout, text, indent, indent);
}

void ctl_print_under(const char *lead, int indent, const char *format, ...)
{
    base_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        text = NULL;
    }
    va_end(args);
    shown_printf("%s", lead);
    ctl_print_wrapped(text ? text : "", indent);
}

static void print_cell(const char *text, int width, bool right, bool last)
{
    int pad = width - cli_width(text);

    shown_printf("%*s%s%*s%s", right ? pad : 0, "", text, right || last ? 0 : pad, "",
                 last ? "\n" : "  ");
}

static void print_row(const struct ctl_table *t, const json_t *row, const int *width)
{
    int column = t->indent;

    printf("%*s", t->indent, "");
    for (size_t c = 0; c < t->columns; c++) {
        const char *cell = row ? cli_cell(row, c) : t->headings[c];

        if (t->align[c] == 'w') {
            ctl_print_wrapped(cell, column);
        } else {
            print_cell(cell, width[c], t->align[c] == 'r', c + 1 == t->columns);
        }
        column += width[c] + 2;
    }
}

void ctl_table_print(struct ctl_table *t)
{
    int width[COLUMNS_MAX] = {0};

    for (size_t c = 0; c < t->columns && c < COLUMNS_MAX; c++) {
        width[c] = cli_width(t->headings[c]);
        json_text_each(t->rows, i, row) {
            width[c] = base_max(width[c], cli_width(cli_cell(row, c)));
        }
    }
    print_row(t, NULL, width);
    json_text_each(t->rows, i, row) {
        if (json_is_array(row)) {
            print_row(t, row, width);
        } else {
            int indent = (int)json_integer_value(json_object_get(row, "indent"));

            printf("%*s", indent, "");
            ctl_print_wrapped(ctl_text(row, "text"), indent);
        }
    }
    json_decref(t->rows);
    t->rows = NULL;
}

const char *ctl_text(const json_t *object, const char *path)
{
    const char *s = json_string_value(json_text_at(object, path));

    return s ? s : "-";
}

struct ctl_words ctl_line(const json_t *object, const char *path)
{
    struct ctl_words w;

    snprintf(w.text, sizeof(w.text), "%s", ctl_text(object, path));
    shown_clean(w.text, "");
    return w;
}

double ctl_real(const json_t *object, const char *path)
{
    return json_number_value(json_text_at(object, path));
}

double ctl_value(const json_t *object, const char *path)
{
    return ctl_has(object, path) ? ctl_real(object, path) : NAN;
}

bool ctl_has(const json_t *object, const char *path)
{
    return json_is_number(json_text_at(object, path));
}

bool ctl_is(const json_t *object, const char *path)
{
    return json_is_true(json_text_at(object, path));
}

struct ctl_word ctl_format(double value, const char *format)
{
    struct ctl_word w = {"-"};

    if (isfinite(value)) {
        snprintf(w.text, sizeof(w.text), format, value);
    }
    return w;
}

struct ctl_word ctl_known(const json_t *object, const char *path, const char *format)
{
    return ctl_format(ctl_value(object, path), format);
}

struct ctl_word ctl_cpus(const char *before, const json_t *cpus)
{
    struct ctl_word w = {""};
    size_t count = json_array_size(cpus);

    for (size_t i = 0; i < count; i++) {
        json_int_t first = json_integer_value(json_array_get(cpus, i)), last = first;

        while (i + 1 < count && json_integer_value(json_array_get(cpus, i + 1)) == last + 1) {
            last++;
            i++;
        }
        base_append(w.text, sizeof(w.text), last > first ? "%s%d-%d" : "%s%d",
                    *w.text ? "," : before, (int)first, (int)last);
    }
    return count ? w : (struct ctl_word){"-"};
}

static void any(const json_t *v, char *ret, size_t bytes, bool inner)
{
    json_t *item;
    const char *key;
    size_t i;

    *ret = '\0';

    if (json_is_string(v)) {
        snprintf(ret, bytes, "%s", json_string_value(v));
    } else if (json_is_integer(v)) {
        snprintf(ret, bytes, "%lld", (long long)json_integer_value(v));
    } else if (json_is_real(v)) {
        snprintf(ret, bytes, "%.4g", json_real_value(v));
    } else if (json_is_boolean(v)) {
        snprintf(ret, bytes, "%s", json_is_true(v) ? "yes" : "no");
    } else if (json_is_array(v) && json_array_size(v) > 0) {
        json_array_foreach(v, i, item)
        {
            char text[512];

            any(item, text, sizeof(text), true);
            base_append(ret, bytes, "%s%s", *ret ? "," : "", text);
        }
    } else if (json_is_object(v) && json_object_get(v, "shape") && json_object_get(v, "dtype")) {
        char shape[256];

        any(json_object_get(v, "shape"), shape, sizeof(shape), true);
        for (char *x = shape; *x; x++) {
            *x = *x == ',' ? 'x' : *x;
        }
        snprintf(ret, bytes, "%s%s%s %s", json_object_get(v, "name") ? ctl_text(v, "name") : "",
                 json_object_get(v, "name") ? " " : "", shape, ctl_text(v, "dtype"));
    } else if (json_is_object(v) && json_object_size(v) > 0) {
        json_object_foreach((json_t *)v, key, item)
        {
            char text[512];

            any(item, text, sizeof(text), true);
            base_append(ret, bytes, "%s%s %s", *ret ? ", " : "", key, text);
        }
    } else {
        snprintf(ret, bytes, "%s", inner ? "" : "-");
    }
}

struct ctl_words ctl_any(const json_t *object, const char *path)
{
    struct ctl_words w;

    any(json_text_at(object, path), w.text, sizeof(w.text), false);
    return w;
}

static void put_field(FILE *to, const struct ctl_column *c, const json_t *object)
{
    const json_t *v = json_text_at(object, c->key);
    char text[1024];

    if (json_is_string(v)) {
        fputs(json_string_value(v), to);
    } else if (c->kind == CTL_ANY) {
        any(v, text, sizeof(text), false);
        fputs(text, to);
    } else if (json_is_number(v)) {
        fprintf(to, c->kind == CTL_DECIMALS ? "%.*f%s" : "%.*g%s", c->digits,
                json_number_value(v) * (c->scale > 0 ? c->scale : 1), c->unit ? c->unit : "");
    } else {
        putc('-', to);
    }
}

void ctl_print_rows(const json_t *list, const struct ctl_column *columns, int indent)
{
    const char *headings[COLUMNS_MAX + 1] = {NULL};
    char align[COLUMNS_MAX + 1] = "";
    struct ctl_table t;

    for (size_t c = 0; columns[c].heading; c++) {
        headings[c] = columns[c].heading;
        align[c] = columns[c].align;
    }
    ctl_table_init(&t, headings, align);
    t.indent = indent;
    json_text_each(list, i, object) {
        base_autofree char *line = NULL;
        size_t bytes;
        FILE *to = open_memstream(&line, &bytes);

        for (size_t c = 0; to && c < t.columns; c++) {
            fputs(c > 0 ? "\t" : "", to);
            put_field(to, &columns[c], object);
        }
        if (to && fclose(to) == 0) {
            ctl_table_add(&t, "%s", line);
        }
    }
    ctl_table_print(&t);
}

json_t *ctl_sorted(const json_t *list, const char *path)
{
    json_t *sorted = json_array();

    json_text_each(list, i, one) {
        double value = ctl_value(one, path);
        size_t at = json_array_size(sorted);

        while (at > 0 && !isnan(value) &&
               !(ctl_value(json_array_get(sorted, at - 1), path) >= value)) {
            at--;
        }
        json_array_insert(sorted, at, one);
    }
    return sorted;
}

struct ctl_words ctl_places(const json_t *board)
{
    struct ctl_words w = {""};

    json_text_each(json_object_get(board, "eps"), i, ep) {
        base_append(w.text, sizeof(w.text), "%s%s x%.0f", i ? ", " : "", ctl_text(ep, "name"),
                    ctl_real(ep, "cores"));
    }
    return w;
}
