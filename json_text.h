/* SPDX-License-Identifier: Apache-2.0 */
/**
 * json_text.h - JSON as text, whole or not at all
 *
 * json_dumps() of Jansson 2.14 ignores that the text of a key could not be appended: if memory runs
 * out there, its text lacks the key, and is returned.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct json_text {
    char *data; /* owned */
    size_t used, size;
    bool failed; /* stays */
};

static inline int json_text_append(const char *data, size_t bytes, void *arg)
{
    struct json_text *t = arg;

    if (!t->failed && t->size - t->used <= bytes) { /* room for the NUL, too */
        size_t size = 2 * (t->used + bytes) + 256;
        char *grown = realloc(t->data, size);

        t->failed = !grown;
        t->data = grown ? grown : t->data;
        t->size = grown ? size : t->size;
    }
    if (t->failed) {
        return -1;
    }
    memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
    t->data[t->used] = '\0';
    return 0;
}

/** json_text() - json_dumps(). Return: owned, or NULL. */
static inline char *json_text(const json_t *value, size_t flags)
{
    struct json_text t = {0};

    if (json_dump_callback(value, json_text_append, &t, flags) < 0 || t.failed) {
        free(t.data);
        return NULL;
    }
    return t.data;
}
