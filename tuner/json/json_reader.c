/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/json_reader.h"

#include <ctype.h>
#include <stdarg.h>

#include "base/base.h"
#include "base/json_text.h"

void tun_wrong(struct tun_reader *r, const char *where, const char *format, ...)
{
    va_list args;
    int n;

    if (r->error[0]) {
        return;
    }
    n = snprintf(r->error, TUN_READER_ERROR_MAX, "%.200s: %s%s", r->path, where,
                 *where ? ": " : "");
    if (n < 0 || n >= (int)TUN_READER_ERROR_MAX) {
        return;
    }
    va_start(args, format);
    vsnprintf(r->error + n, TUN_READER_ERROR_MAX - (size_t)n, format, args);
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

/* Does "key?" or "key" name @key? */
static bool names_key(const char *entry, const char *key)
{
    size_t n = strlen(key);

    return strncmp(entry, key, n) == 0 && (entry[n] == '\0' || strcmp(entry + n, "?") == 0);
}

bool tun_read_keys(struct tun_reader *r, const char *where, const json_t *object,
                   const char *const *keys)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        tun_wrong(r, where, "is not an object");
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        bool known = false;

        for (size_t i = 0; keys[i] && !known; i++) {
            known = names_key(keys[i], key);
        }
        if (!known) {
            tun_wrong(r, where, "unknown key \"%.60s\"", key);
        }
    }
    for (size_t i = 0; keys[i]; i++) {
        if (!strchr(keys[i], '?') && !json_object_get(object, keys[i])) {
            tun_wrong(r, where, "key \"%s\" is missing", keys[i]);
        }
    }
    return !r->error[0];
}

static const char *dot(const char *where)
{
    return *where ? "." : "";
}

/* Return: the number, or NAN with the error set. */
static double number_of(struct tun_reader *r, const char *where, const json_t *object,
                        const char *key)
{
    const json_t *v = json_object_get(object, key);
    char way[160];

    if (json_is_number(v)) {
        return json_number_value(v);
    }
    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    tun_wrong(r, way, v ? "is not a number" : "is missing");
    return NAN;
}

double tun_read_number(struct tun_reader *r, const char *where, const json_t *object,
                       const char *key, double least, double most)
{
    double v = number_of(r, where, object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!(v >= least && v <= most)) {
        tun_wrong(r, way, "%g is not between %g and %g", v, least, most);
        return least;
    }
    return v;
}

double tun_read_positive(struct tun_reader *r, const char *where, const json_t *object,
                         const char *key)
{
    double v = number_of(r, where, object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!(v > 0 && v <= 1e15)) {
        tun_wrong(r, way, "%g is not above 0 (and at most 1e15)", v);
        return 1;
    }
    return v;
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

const json_t *tun_read_eps(struct tun_reader *r, const json_t *root)
{
    const json_t *eps = json_object_get(root, "kinds");

    if (!json_is_array(eps)) {
        tun_wrong(r, "kinds", "is not a list");
    } else if (json_array_size(eps) < 1 || json_array_size(eps) > PL_EP_MAX) {
        tun_wrong(r, "kinds", "has %zu entries; 1 to %u are possible", json_array_size(eps),
                  PL_EP_MAX);
    } else {
        return eps;
    }
    return NULL;
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

void tun_read_ep(struct tun_reader *r, const char *where, const json_t *object, struct tun_ep *ret)
{
    const char *name = tun_read_text(r, where, object, "name", PL_EP_NAME_MAX);
    double cores = tun_read_number(r, where, object, "cores", 1, PL_CPU_MAX);
    char way[160];

    snprintf(ret->name, sizeof(ret->name), "%s", name);
    ret->cores = (uint16_t)cores;
    if (!name_is_plain(name)) {
        snprintf(way, sizeof(way), "%s.name", where);
        tun_wrong(r, way, "\"%s\" may only have letters, digits, '_', '-', '.'", name);
    }
    if (!json_is_integer(json_object_get(object, "cores"))) {
        snprintf(way, sizeof(way), "%s.cores", where);
        tun_wrong(r, way, "is not a whole number");
    }
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
