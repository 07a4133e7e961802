/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/json_reader.h"

#include <ctype.h>

#include "base/base.h"
#include "base/json_text.h"

void tun_wrong(struct tun_reader *r, const char *where, const char *format, ...)
{
    va_list args;

    if (r->error[0]) {
        return;
    }
    snprintf(r->error, TUN_READER_ERROR_MAX, "%.200s: %s%s", r->path, where, *where ? ": " : "");
    va_start(args, format);
    base_vappend(r->error, TUN_READER_ERROR_MAX, format, args);
    va_end(args);
}

json_t *tun_read_file(struct tun_reader *r)
{
    json_error_t e;
    json_t *root = json_text_load(r->path, JSON_REJECT_DUPLICATES, &e);

    if (!root) {
        if (e.line < 0) {
            tun_wrong(r, "", "%s", e.text);
        } else {
            tun_wrong(r, "", "line %d: %s", e.line, e.text);
        }
    } else if (!json_is_object(root)) {
        tun_wrong(r, "", "is not an object");
        json_decref(root);
        root = NULL;
    }
    return root;
}

/* An entry of @keys is "key" or "key?". */
static bool is_known(const char *key, const char *const *keys, const struct tun_field *fields)
{
    size_t n = strlen(key);

    for (; keys && *keys; keys++) {
        if (strncmp(*keys, key, n) == 0 && ((*keys)[n] == '\0' || strcmp(*keys + n, "?") == 0)) {
            return true;
        }
    }
    for (; fields && fields->key; fields++) {
        if (strcmp(fields->key, key) == 0) {
            return true;
        }
    }
    return false;
}

static void require(struct tun_reader *r, const char *where, const json_t *object, const char *key)
{
    if (!json_object_get(object, key)) {
        tun_wrong(r, where, "key \"%s\" is missing", key);
    }
}

static const char *dot(const char *where)
{
    return *where ? "." : "";
}

const char *tun_read_text(struct tun_reader *r, const char *where, const json_t *object,
                          const char *key, size_t bytes_max)
{
    const json_t *v = json_object_get(object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!json_is_string(v)) {
        tun_wrong(r, way, "is not a string");
    } else if (json_string_length(v) == 0 || json_string_length(v) >= bytes_max) {
        tun_wrong(r, way, "must have 1 to %zu bytes", bytes_max - 1);
    } else {
        return json_string_value(v);
    }
    return "?";
}

static bool name_is_plain(const char *s)
{
    for (; *s; s++) {
        if (!isalnum((unsigned char)*s) && *s != '_' && *s != '-' && *s != '.') {
            return false;
        }
    }
    return true;
}

static void read_field(struct tun_reader *r, const char *where, const json_t *object,
                       const struct tun_field *f, void *at)
{
    const json_t *v = json_object_get(object, f->key);
    double x = json_is_number(v) ? json_number_value(v) : f->null;
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), f->key);
    if (f->as == TUN_FLAG && json_is_boolean(v)) {
        *(bool *)at = json_is_true(v);
    } else if (f->as == TUN_FLAG) {
        tun_wrong(r, where, "%s is neither true nor false", f->key);
    } else if (f->as == TUN_TEXT || f->as == TUN_NAME) {
        const char *text = tun_read_text(r, where, object, f->key, (size_t)f->most);

        snprintf(at, (size_t)f->most, "%s", text);
        if (f->as == TUN_NAME && !name_is_plain(text)) {
            tun_wrong(r, way, "\"%s\" may only have letters, digits, '_', '-', '.'", text);
        }
    } else if (!json_is_number(v) && !(json_is_null(v) && f->null != 0)) {
        tun_wrong(r, way, "is not a number");
    } else if (f->as == TUN_POSITIVE && !(x > 0 && x <= 1e15)) {
        tun_wrong(r, way, "%g is not above 0 (and at most 1e15)", x);
    } else if (f->as != TUN_POSITIVE && json_is_number(v) && !(x >= f->least && x <= f->most)) {
        tun_wrong(r, way, "%g is not between %g and %g", x, f->least, f->most);
    } else if (f->as == TUN_REAL || f->as == TUN_POSITIVE) {
        *(double *)at = x;
    } else if (!json_is_integer(v)) {
        tun_wrong(r, way, "is not a whole number");
    } else if (f->as == TUN_COUNT) {
        *(size_t *)at = (size_t)x;
    } else {
        *(uint16_t *)at = (uint16_t)x;
    }
}

void tun_read_fields(struct tun_reader *r, const char *where, const json_t *object,
                     const struct tun_field *fields, void *to)
{
    for (const struct tun_field *f = fields; f && f->key && !r->error[0]; f++) {
        if (json_object_get(object, f->key)) {
            read_field(r, where, object, f, (char *)to + f->at);
        }
    }
}

bool tun_read_object(struct tun_reader *r, const char *where, const json_t *object,
                     const char *const *keys, const struct tun_field *fields, void *to)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        tun_wrong(r, where, "is not an object");
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        if (!is_known(key, keys, fields)) {
            tun_wrong(r, where, "unknown key \"%.60s\"", key);
        }
    }
    for (size_t i = 0; keys && keys[i]; i++) {
        if (!strchr(keys[i], '?')) {
            require(r, where, object, keys[i]);
        }
    }
    for (const struct tun_field *f = fields; f && f->key; f++) {
        if (!f->optional) {
            require(r, where, object, f->key);
        }
    }
    tun_read_fields(r, where, object, fields, to);
    return !r->error[0];
}

static json_t *field_json(const struct tun_field *f, const void *at)
{
    switch (f->as) {
    case TUN_TEXT:
    case TUN_NAME:
        return json_string(at);
    case TUN_FLAG:
        return json_boolean(*(const bool *)at);
    case TUN_COUNT:
        return json_integer((json_int_t)(*(const size_t *)at));
    case TUN_SHORT:
        return json_integer(*(const uint16_t *)at);
    default:
        return json_text_number(*(const double *)at);
    }
}

json_t *tun_fields_add(json_t *object, const struct tun_field *fields, const void *from)
{
    for (const struct tun_field *f = fields; f->key; f++) {
        if (f->optional && f->as <= TUN_POSITIVE &&
            !(*(const double *)((const char *)from + f->at) > 0)) {
            continue;
        }
        json_object_set_new(object, f->key, field_json(f, (const char *)from + f->at));
    }
    return object;
}

json_t *tun_rows_json(const struct tun_field *fields, const void *rows, size_t count, size_t bytes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(
            list, tun_fields_add(json_object(), fields, (const char *)rows + i * bytes));
    }
    return list;
}

const json_t *tun_read_list(struct tun_reader *r, const json_t *object, const char *where,
                            const char *key, size_t least, size_t most)
{
    const json_t *v = json_object_get(object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!json_is_array(v)) {
        tun_wrong(r, way, "is not a list");
    } else if (least == most && json_array_size(v) != most) {
        tun_wrong(r, way, "has %zu entries instead of %zu", json_array_size(v), most);
    } else if (json_array_size(v) < least || json_array_size(v) > most) {
        tun_wrong(r, way, "has %zu entries; %zu to %zu are possible", json_array_size(v), least,
                  most);
    } else {
        return v;
    }
    return NULL;
}

bool tun_read_numbers(struct tun_reader *r, const json_t *object, const char *where,
                      const char *key, size_t count, double *ret)
{
    const json_t *list = tun_read_list(r, object, where, key, count, count);

    for (size_t i = 0; list && i < count; i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_number(v)) {
            tun_wrong(r, where, "%s: entry %zu is not a number", key, i);
            return false;
        }
        ret[i] = json_number_value(v);
    }
    return list != NULL;
}

void tun_read_distinct(struct tun_reader *r, const struct tun_ep *eps, size_t count)
{
    size_t cores = 0;

    for (size_t k = 0; k < count; k++) {
        cores += eps[k].cores;
        for (size_t j = 0; j < k; j++) {
            if (strcmp(eps[j].name, eps[k].name) == 0) {
                tun_wrong(r, "kinds", "two are called \"%s\"", eps[k].name);
            }
        }
    }
    if (cores > PL_CPU_MAX) {
        tun_wrong(r, "kinds", "have %zu cores in all; %u are possible", cores, PL_CPU_MAX);
    }
}
