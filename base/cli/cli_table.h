/* SPDX-License-Identifier: Apache-2.0 */
/** base/cli/cli_table.h - tables that programs print: of texts, or of the fields of objects */
#pragma once

#include "base/json_text.h"

/* A table of text, begun with its alignment. Columns are as wide as they need to be. */
struct cli_table {
    const char *align; /* for each column 'l' or 'r'; for the last also 'w': wrapped */
    int indent;        /* of the whole table */
    json_t *rows;      /* owned: arrays of strings, and notes; NULL: none yet */
};
/** cli_table_add() - adds a row, whose cells are separated by '\t'; the first one has headings. */
void cli_table_add(struct cli_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** cli_table_note() - adds a wrapped line below the last row, @indent columns in. */
void cli_table_note(struct cli_table *t, int indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** cli_table_print() - prints the table and frees it. */
void cli_table_print(struct cli_table *t);

/* A column of objects: which field it shows, and how. */
struct cli_column {
    const char *heading;
    const char *key;
    char align; /* as in struct cli_table */
    /* any value as cli_any() writes it; or a number with @digits decimals or significant digits,
     * "-" where it is none */
    enum { CLI_ANY, CLI_DECIMALS, CLI_SIGNIFICANT } kind;
    int digits;
    double scale;     /* the number is multiplied by it; 0: by 1 */
    const char *unit; /* behind the number; NULL: none */
    bool positive;    /* 0 is unknown, too */
};
/** cli_print_rows() - prints a list of objects as a table. @columns: a NULL heading ends them. */
void cli_print_rows(const json_t *list, const struct cli_column *columns);
/** cli_any() - any value as people read it: "yes", "1,2", "a 1, b 2", "1x3x224x224 f32"; "-" if it
 * is missing. */
void cli_any(const json_t *v, char *ret, size_t bytes);
