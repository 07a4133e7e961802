/* SPDX-License-Identifier: Apache-2.0 */
#include "model/segment/segment_name.h"

#include <string.h>

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* Reads one number and moves *@at behind it. */
static bool parse_unit(const char **at, size_t *ret)
{
    const char *s = *at;
    size_t n = 0;

    if (*s < '0' || *s > '9' || (s[0] == '0' && s[1] >= '0' && s[1] <= '9')) {
        return false;
    }
    for (; *s >= '0' && *s <= '9'; s++) {
        n = n * 10 + (size_t)(*s - '0');
        if (n > MDL_SEGMENT_UNIT_MAX) {
            return false;
        }
    }
    *at = s;
    *ret = n;
    return true;
}

bool mdl_segment_name_parse(const char *text, struct mdl_segment_name *ret)
{
    size_t bytes = strnlen(text, MDL_SEGMENT_NAME_MAX), name = strspn(text, NAME_BYTES);
    struct mdl_segment_name n = {.is_segment = text[name] == '#'};
    const char *at = text + name + 1;

    if (bytes == MDL_SEGMENT_NAME_MAX || name == 0 || text[0] == '-' ||
        (name <= 2 && strncmp(text, "..", name) == 0)) {
        return false;
    }
    if (n.is_segment) {
        if (!parse_unit(&at, &n.first_unit) || *at++ != '-' || !parse_unit(&at, &n.last_unit) ||
            *at || n.first_unit > n.last_unit) {
            return false;
        }
    } else if (text[name]) {
        return false;
    }
    memcpy(n.model, text, name);
    *ret = n;
    return true;
}
