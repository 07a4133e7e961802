/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/common/output.h - prints results: JSON, tables, wrapped text, fields of replies */
#pragma once

#include "base/cli/cli_table.h"

void ctl_print_json(const json_t *v);
/** ctl_print_new() - the same, and drops the reference. */
void ctl_print_new(json_t *v);
/** ctl_print_note() - prints the "note" of a verdict, if it has one. */
void ctl_print_note(const json_t *verdict);
/** ctl_print_wrapped() - prints text and a newline. Breaks lines at CLI_COLUMNS, after a space or
 * '|'. The cursor is at column @indent, where later lines start, too. */
void ctl_print_wrapped(const char *text, int indent);
/** ctl_print_under() - prints @lead, and text behind it in the same way. */
void ctl_print_under(const char *lead, int indent, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** ctl_sorted() - Return: new: the objects of a list, those with the largest number at @path first;
 * unknown ones are last, equal ones keep their order. */
json_t *ctl_sorted(const json_t *list, const char *path);

/* A part of a line. What a function returned is there until the end of the statement. */
struct ctl_word {
    char text[128];
};
struct ctl_words {
    char text[1024];
};

/* Fields of a reply, which may be missing or of another type. @path: as in "sensors.energy.joules",
 * a key of a key of a key. */

/** ctl_text() - Return: the text, or "-". */
const char *ctl_text(const json_t *object, const char *path);
/** ctl_line() - the same as a part of a line or a cell: nothing hidden is in it. */
struct ctl_words ctl_line(const json_t *object, const char *path);
#define CTL_WISHES_BYTES 160u
/** ctl_wishes_text() - "30 frames/s, each due within 40 ms, class 1". Return: something is wished.
 */
bool ctl_wishes_text(const json_t *wishes, char ret[CTL_WISHES_BYTES]);
/** ctl_real() - Return: the number, or 0. */
double ctl_real(const json_t *object, const char *path);
/** ctl_value() - Return: the number, or NAN. */
double ctl_value(const json_t *object, const char *path);
/** ctl_has() - Return: it is a number. */
bool ctl_has(const json_t *object, const char *path);
/** ctl_is() - Return: it is true. */
bool ctl_is(const json_t *object, const char *path);
/** ctl_any() - any value as text; "-" if missing. */
struct ctl_words ctl_any(const json_t *object, const char *path);
/** ctl_cpus() - a list of CPUs as "0-3,6", with @before in front; "-" if it is empty. */
struct ctl_word ctl_cpus(const char *before, const json_t *cpus);
/** ctl_format() - @value by @format, which has one %f; "-" if it is not finite. */
struct ctl_word ctl_format(double value, const char *format) __attribute__((format(printf, 2, 0)));
/** ctl_known() - the same of a field; "-" if it is not a number. */
struct ctl_word ctl_known(const json_t *object, const char *path, const char *format)
    __attribute__((format(printf, 3, 0)));
/* What is told of a plan for all models: of PlanMix, or mix of Status. */

#define CTL_ALL 0.99 /* of the wished rates; costs are known no better */

/** ctl_mix_limits() - "big and little", the EPs that limit it most; "": there is only one, or none
 * does. */
struct ctl_words ctl_mix_limits(const json_t *mix);
/** ctl_mix_reaches() - "One plan for 3 models reaches 97.2 % of what these cores could ever do; big
 * limits it." */
struct ctl_words ctl_mix_reaches(const json_t *mix);
/** ctl_mix_keeps() - "All rates can be kept. All deadlines can be kept." or which not and why; "":
 * there is neither. */
struct ctl_words ctl_mix_keeps(const json_t *mix);
/** ctl_mix_gives() - "60.0 frames/s, each within 18.1 ms, with 42 % of big and 9 % of little".
 * @row: of models. */
struct ctl_words ctl_mix_gives(const json_t *row);
/** ctl_places() - the execution places of a board, as "big x4, little x4". */
struct ctl_words ctl_places(const json_t *board);
