/* SPDX-License-Identifier: Apache-2.0 */
/** cli_rows.h - the rows of a table that pipectl or pipesim prints: JSON arrays of texts */
#pragma once

#include <jansson.h>
#include <stdarg.h>

/** cli_add_row() - adds a row, whose cells are separated by '\t' in the text, to @rows.
 * A cell has nothing hidden: see shown_text.h. */
void cli_add_row(json_t *rows, const char *format, va_list args);

/** cli_cell() - Return: the text of a cell, or "" where the row has none. */
const char *cli_cell(const json_t *row, size_t column);
