/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_of - the page that a script of bench/ describes, as apps/page frames and draws it
 *
 *     page_of < DESCRIPTION.json > PAGE.html
 *
 * DESCRIPTION is {"title": text, "parts": [part...]}. A part is one of
 *     {"heading": text, "level": 2 or 3}
 *     {"paragraph": text, ["kind": its class]}
 *     {"table": caption, "columns": [text...], "rows": [[text...]...]}
 *     {"chart": the object of page_chart()}
 * Exit code: 1 if the description makes no sense.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "apps/page/page.h"
#include "base/base.h"

#define COLUMNS_MAX 24

static int table(const char *caption, const json_t *columns, const json_t *rows)
{
    struct page_column shown[COLUMNS_MAX + 1] = {0};
    char keys[COLUMNS_MAX][8];
    size_t count = json_array_size(columns), i, k;
    const json_t *row;
    json_t *objects;

    if (count == 0 || count > COLUMNS_MAX) {
        fprintf(stderr, "page_of: a table has %zu columns; 1 to %d are possible\n", count,
                COLUMNS_MAX);
        return -1;
    }
    for (i = 0; i < count; i++) {
        snprintf(keys[i], sizeof(keys[i]), "c%zu", i);
        shown[i] = (struct page_column){.heading = json_string_value(json_array_get(columns, i)),
                                        .path = keys[i]};
    }
    objects = json_array();
    json_array_foreach(rows, i, row)
    {
        json_t *object = json_object();

        for (k = 0; k < count; k++) {
            json_object_set(object, keys[k], json_array_get(row, k));
        }
        json_array_append_new(objects, object);
    }
    page_table(stdout, caption, shown, objects);
    json_decref(objects);
    return 0;
}

static int part(const json_t *p)
{
    const json_t *chart = json_object_get(p, "chart");
    const char *text;

    if ((text = json_string_value(json_object_get(p, "heading"))) != NULL) {
        json_int_t level = json_integer_value(json_object_get(p, "level"));

        page_heading(stdout, level == 3 ? 3 : 2, "%s", text);
    } else if ((text = json_string_value(json_object_get(p, "paragraph"))) != NULL) {
        page_paragraph(stdout, json_string_value(json_object_get(p, "kind")), "%s", text);
    } else if ((text = json_string_value(json_object_get(p, "table"))) != NULL) {
        return table(text, json_object_get(p, "columns"), json_object_get(p, "rows"));
    } else if (json_is_object(chart)) {
        page_chart(stdout, json_deep_copy(chart));
    } else {
        fprintf(stderr, "page_of: a part is neither heading, paragraph, table nor chart\n");
        return -1;
    }
    return 0;
}

int main(void)
{
    json_error_t error;
    json_t *description = json_loadf(stdin, 0, &error);
    const char *title = json_string_value(json_object_get(description, "title"));
    const json_t *p;
    bool bad = false;
    size_t i;

    if (!title) {
        fprintf(stderr, "page_of: no description with a title: %s\n",
                description ? "it has none" : error.text);
        json_decref(description);
        return 1;
    }
    page_begin(stdout, title);
    if (!page_has_charts()) {
        page_paragraph(stdout, "warn", "%s.", PAGE_NO_CHARTS);
    }
    json_array_foreach(json_object_get(description, "parts"), i, p)
    {
        bad |= part(p) < 0;
    }
    page_end(stdout);
    json_decref(description);
    return bad || fflush(stdout) != 0 || ferror(stdout) ? 1 : 0;
}
