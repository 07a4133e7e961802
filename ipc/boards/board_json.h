/* SPDX-License-Identifier: Apache-2.0 */
/** ipc/boards/board_json.h - reading untrusted JSON, for the files of board_state.h */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ipc/boards/known_boards.h"

/** brd_get_text() - Return: false if it is no string, or longer than fits @ret. */
static inline bool brd_get_text(const json_t *o, const char *key, char *ret, size_t bytes)
{
    const json_t *v = json_object_get(o, key);
    size_t n = json_string_length(v);

    if (!json_is_string(v) || n >= bytes || strlen(json_string_value(v)) != n) {
        return false;
    }
    memcpy(ret, json_string_value(v), n + 1);
    return true;
}

/** brd_get_optional_text() - as brd_get_text(); "" if the key is missing. */
static inline bool brd_get_optional_text(const json_t *o, const char *key, char *ret, size_t bytes)
{
    *ret = '\0';
    return !json_object_get(o, key) || brd_get_text(o, key, ret, bytes);
}

/** brd_get_number() - a finite number from 0 to @max; 0 if the key is missing. Return: false:
 * anything else is there. */
static inline bool brd_get_number(const json_t *o, const char *key, double max, double *ret)
{
    const json_t *v = json_object_get(o, key);

    *ret = json_number_value(v);
    return !v || (json_is_number(v) && isfinite(*ret) && *ret >= 0 && *ret <= max);
}

/** brd_get_count() - an integer from @min to @max. */
static inline bool brd_get_count(const json_t *o, const char *key, json_int_t min, json_int_t max,
                                 json_int_t *ret)
{
    const json_t *v = json_object_get(o, key);

    *ret = json_integer_value(v);
    return json_is_integer(v) && *ret >= min && *ret <= max;
}

/** brd_get_list() - Return: an array of at most @max; false: it is none, or longer. A missing one
 * is empty: NULL. */
static inline bool brd_get_list(const json_t *o, const char *key, size_t max, const json_t **ret)
{
    *ret = json_object_get(o, key);
    return !*ret || (json_is_array(*ret) && json_array_size(*ret) <= max);
}

static inline bool brd_is_print(const char *text)
{
    return strlen(text) == BRD_FINGERPRINT_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == BRD_FINGERPRINT_BYTES - 1;
}

/** brd_get_print() - a fingerprint. @optional: it may be missing or "". */
static inline bool brd_get_print(const json_t *o, const char *key, bool optional,
                                 char ret[BRD_FINGERPRINT_BYTES])
{
    return optional ? brd_get_optional_text(o, key, ret, BRD_FINGERPRINT_BYTES) &&
                          (!*ret || brd_is_print(ret))
                    : brd_get_text(o, key, ret, BRD_FINGERPRINT_BYTES) && brd_is_print(ret);
}
