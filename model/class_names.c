/* SPDX-License-Identifier: Apache-2.0 */
#include "model/class_names.h"

#include <ctype.h>

#include "base/shown_text.h"
#include "model/sidecar.h"

static const char *skip(const char *s)
{
    while (*s == ' ') {
        s++;
    }
    return s;
}

/* Return: what follows @c and blanks; NULL: @s is NULL or begins otherwise. */
static const char *take(const char *s, char c)
{
    return s && *s == c ? skip(s + 1) : NULL;
}

/* A name in quotes. Return: what follows; NULL: it is none. @ret: without quotes. */
static const char *take_name(const char *s, char ret[MDL_LABEL_BYTES_MAX])
{
    char quote = s ? *s : '\0';
    size_t n = 0;

    if (quote != '\'' && quote != '"') {
        return NULL;
    }
    for (s++; *s && *s != quote; s++) {
        if (*s == '\\' && !strchr("'\"\\", *++s)) {
            return NULL;
        }
        if (!*s || n + 1 == MDL_LABEL_BYTES_MAX) {
            return NULL;
        }
        ret[n++] = *s;
    }
    ret[n] = '\0';
    return *s && shown_ok((const unsigned char *)ret, n) ? skip(s + 1) : NULL;
}

/* The number of class @i and a colon. JSON has keys in quotes. */
static const char *take_key(const char *s, size_t i)
{
    char quote = *s == '\'' || *s == '"' ? *s : '\0';
    char *end;

    s += quote != '\0';
    if (!isdigit((unsigned char)*s) || strtoull(s, &end, 10) != i) {
        return NULL;
    }
    if (quote && *end++ != quote) {
        return NULL;
    }
    return take(skip(end), ':');
}

/* Return: how many names there are; 0: the text is of another form. @names: NULL: only counts. */
static size_t read_names(const char *text, struct mdl_pool *pool, char **names)
{
    bool listed = *skip(text) == '[';
    const char *s = take(skip(text), listed ? '[' : '{');
    size_t count = 0;

    while (s && count < MDL_LABELS_MAX) {
        char name[MDL_LABEL_BYTES_MAX];

        s = take_name(listed ? s : take_key(s, count), name);
        if (s && names && !(names[count] = mdl_pool_strdup(pool, name))) {
            return 0;
        }
        count++;
        if (s && *s != ',') {
            s = take(s, listed ? ']' : '}');
            return s && !*s ? count : 0;
        }
        s = take(s, ',');
    }
    return 0;
}

char **mdl_class_names(const char *text, struct mdl_pool *pool, size_t *ret_count)
{
    size_t count = read_names(text, pool, NULL);
    char **names = count ? mdl_pool_alloc(pool, count, sizeof(*names)) : NULL;

    *ret_count = names && read_names(text, pool, names) == count ? count : 0;
    return *ret_count ? names : NULL;
}
