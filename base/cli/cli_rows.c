/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/cli_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown_text.h"

void cli_add_row(json_t *rows, const char *format, va_list args)
{
    json_t *row = json_array();
    char *text = NULL;

    if (vasprintf(&text, format, args) >= 0) {
        shown_clean(text, "\t");
        for (char *at = text, *cell; (cell = strsep(&at, "\t"));) {
            json_array_append_new(row, json_string(cell));
        }
        free(text);
    }
    json_array_append_new(rows, row);
}

const char *cli_cell(const json_t *row, size_t column)
{
    const char *s = json_string_value(json_array_get(row, column));

    return s ? s : "";
}
