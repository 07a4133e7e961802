/* SPDX-License-Identifier: Apache-2.0 */
/** cli_rows.h - the rows of a table that pipectl or pipesim prints: JSON arrays of texts */
#pragma once

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shown_text.h"

/** cli_add_row() - adds a row, whose cells are separated by '\t' in the text, to @rows.
 * A cell has nothing hidden: see shown_text.h. */
static inline void cli_add_row(json_t *rows, const char *format, va_list args)
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

/** cli_cell() - Return: the text of a cell, or "" where the row has none. */
static inline const char *cli_cell(const json_t *row, size_t column)
{
    const char *s = json_string_value(json_array_get(row, column));

    return s ? s : "";
}
