/* SPDX-License-Identifier: Apache-2.0 */
/**
 * json_text.h - JSON as text, whole or not at all
 *
 * json_dumps() of Jansson 2.14 ignores that the text of a key could not be appended: if memory runs
 * out there, its text lacks the key, and is returned.
 *
 * Characters that shown_text.h hides are written as escapes, which mean the same: JSON may go to a
 * terminal, too.
 */
#pragma once

#include <jansson.h>

#include "base/base.h"

struct json_text {
    char *data; /* owned */
    size_t used, size;
    bool failed; /* stays */
};

/** json_text_of() - Return: the text of @key, borrowed from @object; "": it has none. */
const char *json_text_of(const json_t *object, const char *key);
/** json_text_at() - Return: the value at a path, as in "sensors.energy.joules", borrowed; NULL:
 * there is none. */
json_t *json_text_at(const json_t *object, const char *path);
/** json_text_find() - Return: the object of @list whose @key is @text, borrowed; NULL: none. */
json_t *json_text_find(const json_t *list, const char *key, const char *text);
/** json_text_same() - the same of any @value, which may be NULL: then there is none. */
json_t *json_text_same(const json_t *list, const char *key, const json_t *value);
/** json_text_number() - Return: new: the number; null: it is NAN or infinite. */
json_t *json_text_number(double v);
/** json_text_list() - Return: new: a list of @count texts, borrowed during the call. */
json_t *json_text_list(const char *const *texts, size_t count);
/* As json_array_foreach(), but it declares @i, a size_t, and @item, a json_t *; NULL is an empty
 * list. The inner loop runs once, so that break and continue are those of one loop. */
#define json_text_each(list, i, item)                                                              \
    for (size_t i = 0, item##_open = 1; item##_open && i < json_array_size(list); i++)             \
        for (json_t *item = (item##_open = 0, json_array_get(list, i)); !item##_open;              \
             item##_open = 1)

/* Jansson passes whole characters, and white space of its own between values. */
int json_text_append(const char *data, size_t bytes, void *arg);

/** json_text() - json_dumps(). Return: owned, or NULL. */
char *json_text(const json_t *value, size_t flags);

/** json_text_shown() - json_string() of a text that may quote a file or a client, and be cut within
 * a character: what is not UTF-8, or hidden, is '?', so that the rest is not lost. Return: NULL:
 * out of memory. */
json_t *json_text_shown(const char *text);

/** json_text_path() - json_string() of a file's name; as json_text_shown() if it is not UTF-8. */
json_t *json_text_path(const char *path);

/** json_text_print() - json_dumpf(). Return: 0; -1: out of memory, or it could not be written. */
int json_text_print(const json_t *value, FILE *to, size_t flags);

/* ---- files that people write ---- */

/** json_text_mark() - Return: bytes of the byte order mark that some editors write first. */
size_t json_text_mark(const char *text, size_t bytes);

/** json_text_read() - json_loadb() of what a file holds. */
json_t *json_text_read(const char *text, size_t bytes, size_t flags, json_error_t *ret_error);

/** json_text_load() - json_load_file(), also of a pipe. @ret_error: its line is -1 if nothing could
 * be read. */
json_t *json_text_load(const char *path, size_t flags, json_error_t *ret_error);

/** json_text_save() - json_dump_file(). Return: 0; -errno. */
int json_text_save(const json_t *value, const char *path, size_t flags);
