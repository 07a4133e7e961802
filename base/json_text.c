/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_text.h"

#include <math.h>

#include "base/shown_text.h"

const char *json_text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

json_t *json_text_at(const json_t *object, const char *path)
{
    char key[64];

    for (size_t n; path[n = strcspn(path, ".")]; path += n + 1) {
        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        object = json_object_get(object, key);
    }
    return json_object_get(object, path);
}

json_t *json_text_find(const json_t *list, const char *key, const char *text)
{
    json_text_each(list, i, one) {
        const char *its = json_string_value(json_object_get(one, key));

        if (its && strcmp(its, text) == 0) {
            return one;
        }
    }
    return NULL;
}

json_t *json_text_list(const char *const *texts, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_string(texts[i]));
    }
    return list;
}

json_t *json_text_same(const json_t *list, const char *key, const json_t *value)
{
    json_text_each(list, i, one) {
        if (json_equal(json_object_get(one, key), value)) {
            return one;
        }
    }
    return NULL;
}

json_t *json_text_number(double v)
{
    return isfinite(v) ? json_real(v) : json_null();
}

/* Return: as callbacks of Jansson: 0 or -1. */
static int json_text_put(struct json_text *t, const char *data, size_t bytes)
{
    /* room for the NUL, too */
    t->failed = t->failed || !base_room_for(&t->data, 1, t->used + bytes + 1, &t->size);
    if (t->failed) {
        return -1;
    }
    memcpy(t->data + t->used, data, bytes);
    t->used += bytes;
    t->data[t->used] = '\0';
    return 0;
}

static int json_text_escape(struct json_text *t, uint32_t c)
{
    char text[16];
    int n = c < 0x10000
                ? snprintf(text, sizeof(text), "\\u%04x", (unsigned)c)
                : snprintf(text, sizeof(text), "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                           (unsigned)(0xdc00 + (c & 0x3ff)));

    return json_text_put(t, text, (size_t)n);
}

int json_text_append(const char *data, size_t bytes, void *arg)
{
    size_t from = 0, n;
    uint32_t c;
    int r = 0;

    for (size_t at = 0; r == 0 && at < bytes; at += n) {
        n = shown_decode(data + at, bytes - at, &c);
        if (n == 0 || c < 0x20 || !shown_hidden(c)) {
            n = n == 0 ? 1 : n;
            continue;
        }
        r = json_text_put(arg, data + from, at - from);
        r = r == 0 ? json_text_escape(arg, c) : r;
        from = at + n;
    }
    return r == 0 ? json_text_put(arg, data + from, bytes - from) : r;
}

char *json_text(const json_t *value, size_t flags)
{
    struct json_text t = {0};

    if (json_dump_callback(value, json_text_append, &t, flags) < 0 || t.failed) {
        free(t.data);
        return NULL;
    }
    return t.data;
}

json_t *json_text_shown(const char *text)
{
    size_t bytes = strlen(text) + 1;
    json_malloc_t take;
    json_free_t give;
    json_t *s = NULL;
    char *copy;

    json_get_alloc_funcs(&take, &give); /* who counts failures of JSON counts this one, too */
    copy = take(bytes);
    if (copy) {
        memcpy(copy, text, bytes);
        shown_clean(copy, "\n\t");
        s = json_string(copy);
        give(copy);
    }
    return s;
}

json_t *json_text_path(const char *path)
{
    json_t *s = json_string(path);

    return s ? s : json_text_shown(path);
}

int json_text_print(const json_t *value, FILE *to, size_t flags)
{
    char *text = json_text(value, flags);
    int r = text && fputs(text, to) >= 0 ? 0 : -1;

    free(text);
    return r;
}

size_t json_text_mark(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

json_t *json_text_read(const char *text, size_t bytes, size_t flags, json_error_t *ret_error)
{
    size_t mark = json_text_mark(text, bytes);

    return json_loadb(text + mark, bytes - mark, flags, ret_error);
}

json_t *json_text_load(const char *path, size_t flags, json_error_t *ret_error)
{
    FILE *f = fopen(path, "re");
    int c = f ? getc(f) : EOF;
    json_t *value = NULL;

    if (!f || ferror(f)) {
        *ret_error = (json_error_t){.line = -1, .column = -1};
        snprintf(ret_error->text, sizeof(ret_error->text), "%s", strerror(errno));
    } else if (c == 0xef && (getc(f) != 0xbb || getc(f) != 0xbf)) { /* nor is it JSON */
        *ret_error = (json_error_t){.line = 1, .column = 1};
        snprintf(ret_error->text, sizeof(ret_error->text), "'[' or '{' expected");
    } else {
        if (c != 0xef) {
            ungetc(c, f);
        }
        value = json_loadf(f, flags, ret_error);
    }
    if (f) {
        fclose(f);
    }
    return value;
}

int json_text_save(const json_t *value, const char *path, size_t flags)
{
    FILE *f = fopen(path, "we");
    int r = f ? 0 : -errno;

    if (f) {
        errno = ENOMEM;
        r = json_text_print(value, f, flags) < 0 ? -errno : 0;
        r = fclose(f) != 0 && r == 0 ? -errno : r;
    }
    return r;
}
