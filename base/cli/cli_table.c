/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/cli_table.h"

#include "base/cli/cli.h"
#include "base/shown_text.h"

#define COLUMNS_MAX 16

static void add(struct cli_table *t, json_t *row)
{
    t->rows = t->rows ? t->rows : json_array();
    json_array_append_new(t->rows, row);
}

void cli_table_add(struct cli_table *t, const char *format, ...)
{
    base_autofree char *text = NULL;
    json_t *row = json_array();
    va_list args;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        text = NULL;
    }
    for (char *at = text, *cell; (cell = strsep(&at, "\t"));) {
        shown_clean(cell, "");
        json_array_append_new(row, json_string(cell));
    }
    add(t, row);
}

void cli_table_note(struct cli_table *t, int indent, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int n;

    va_start(args, format);
    n = vasprintf(&text, format, args);
    va_end(args);
    if (n >= 0) {
        shown_clean(text, "");
        add(t, json_pack("{s:i, s:s}", "indent", indent, "text", text));
        free(text);
    }
}

static const char *cell_of(const json_t *row, size_t column)
{
    const char *s = json_string_value(json_array_get(row, column));

    return s ? s : "";
}

static void print_row(const struct cli_table *t, const json_t *row, const int *width)
{
    int column = t->indent;

    printf("%*s", t->indent, "");
    for (size_t c = 0; t->align[c]; c++) {
        const char *cell = cell_of(row, c);
        int pad = width[c] - cli_width(cell);
        bool right = t->align[c] == 'r', last = !t->align[c + 1];

        if (t->align[c] == 'w') {
            cli_print_wrapped(stdout, cell, column, column);
        } else {
            shown_printf("%*s%s%*s%s", right ? pad : 0, "", cell, right || last ? 0 : pad, "",
                         last ? "\n" : "  ");
        }
        column += width[c] + 2;
    }
}

void cli_table_print(struct cli_table *t)
{
    int width[COLUMNS_MAX] = {0};

    for (size_t c = 0; t->align[c] && c < COLUMNS_MAX; c++) {
        json_text_each(t->rows, i, row) {
            width[c] = base_max(width[c], cli_width(cell_of(row, c)));
        }
    }
    json_text_each(t->rows, i, row) {
        if (json_is_array(row)) {
            print_row(t, row, width);
        } else {
            int indent = (int)json_integer_value(json_object_get(row, "indent"));

            printf("%*s", indent, "");
            cli_print_wrapped(stdout, json_text_of(row, "text"), indent, indent);
        }
    }
    json_decref(base_take(t->rows));
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
        snprintf(ret, bytes, "%s%s%s %s", json_text_of(v, "name"),
                 json_object_get(v, "name") ? " " : "", shape, json_text_of(v, "dtype"));
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

void cli_any(const json_t *v, char *ret, size_t bytes)
{
    any(v, ret, bytes, false);
}

static json_t *cell(const char *text)
{
    base_autofree char *copy = strdup(text);

    if (copy) {
        shown_clean(copy, "");
    }
    return json_string(copy ? copy : "?");
}

/* Return: new: the field as text. */
static json_t *field(const struct cli_column *c, const json_t *object)
{
    const json_t *v = json_text_at(object, c->key);
    char text[1024] = "-";

    if (c->kind == CLI_ANY) {
        any(v, text, sizeof(text), false);
    } else if (json_is_number(v) && (!c->positive || json_number_value(v) > 0)) {
        snprintf(text, sizeof(text), c->kind == CLI_DECIMALS ? "%.*f%s" : "%.*g%s", c->digits,
                 json_number_value(v) * (c->scale > 0 ? c->scale : 1), c->unit ? c->unit : "");
    }
    return cell(json_is_string(v) ? json_string_value(v) : text);
}

void cli_print_rows(const json_t *list, const struct cli_column *columns)
{
    json_t *headings = json_array();
    char align[COLUMNS_MAX + 1] = "";
    struct cli_table t = {.align = align};

    for (size_t c = 0; columns[c].heading; c++) {
        align[c] = columns[c].align;
        json_array_append_new(headings, json_string(columns[c].heading));
    }
    add(&t, headings);
    json_text_each(list, i, object) {
        json_t *row = json_array();

        for (size_t c = 0; align[c]; c++) {
            json_array_append_new(row, field(&columns[c], object));
        }
        add(&t, row);
    }
    cli_table_print(&t);
}
