/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms and the time of units, read from the metrics in Prometheus text format. */
#include "apps/pipectl/common/pipectl.h"
#include "apps/pipectl/report/page.h"

#define TEXT_MAX 1024u

/* What stands between quotes at @c, which is behind the first one. Return: behind the last one;
 * NULL: there is none. */
static const char *read_quoted(const char *c, char *ret)
{
    size_t n = 0;

    for (; *c && *c != '"'; c++) {
        char letter = *c;

        if (letter == '\\' && c[1]) {
            letter = *++c == 'n' ? '\n' : *c;
        }
        if (n + 1 < TEXT_MAX) {
            ret[n++] = letter;
        }
    }
    ret[n] = '\0';
    return *c ? c + 1 : NULL;
}

/* {a="b",c="d"} at @c. Return: behind it; NULL: it is something else. */
static const char *read_labels(const char *c, json_t *ret)
{
    char value[TEXT_MAX];

    for (c++; c && *c && *c != '}'; c += c && *c == ',') {
        size_t name = strcspn(c, "=,}");
        char key[64];

        if (strncmp(c + name, "=\"", 2) != 0) {
            return NULL;
        }
        snprintf(key, sizeof(key), "%.*s", (int)name, c);
        c = read_quoted(c + name + 2, value);
        json_object_set_new(ret, key, json_string(value));
    }
    return c && *c == '}' ? c + 1 : NULL;
}

/* The object under @key, made where it is missing. */
static json_t *below(json_t *object, const char *key)
{
    json_t *found = json_object_get(object, key);

    if (!found) {
        found = json_object();
        json_object_set_new(object, key, found);
    }
    return found;
}

static void append(json_t *object, const char *key, double v)
{
    if (!json_object_get(object, key)) {
        json_object_set_new(object, key, json_array());
    }
    json_array_append_new(json_object_get(object, key), json_real(v));
}

/* One sample, named in full. @rest: what follows the name of the family. */
static void take(json_t *family, const char *rest, const json_t *labels, double v)
{
    const char *le = json_string_value(json_object_get(labels, "le"));

    if (strcmp(rest, "_sum") == 0) {
        json_object_set_new(family, "sum", json_real(v));
    } else if (strcmp(rest, "_count") == 0) {
        json_object_set_new(family, "frames", json_real(v));
    } else if (strcmp(rest, "_bucket") == 0 && le && strcmp(le, "+Inf") != 0) {
        append(family, "le", strtod(le, NULL));
        append(family, "count", v);
    }
}

static void take_line(json_t *all, const char *line)
{
    static const struct {
        const char *name, *key;
    } families[] = {{"piped_frame_latency_seconds", "latency"},
                    {"piped_frame_queue_seconds", "queue"},
                    {"piped_frame_compute_seconds", "compute"},
                    {"piped_frame_preparing_seconds", "preparing"},
                    {"piped_unit_seconds", "units"}};
    size_t name = strcspn(line, "{ \n");

    for (size_t i = 0; i < base_array_count(families) && line[name] == '{'; i++) {
        size_t length = strlen(families[i].name);
        json_t *labels, *family;
        const char *value, *model, *unit;
        char rest[32];

        if (length > name || strncmp(line, families[i].name, length) != 0) {
            continue;
        }
        snprintf(rest, sizeof(rest), "%.*s", (int)(name - length), line + length);
        labels = json_object();
        value = read_labels(line + name, labels);
        model = json_string_value(json_object_get(labels, "model"));
        unit = json_string_value(json_object_get(labels, "unit"));
        if (value && model) {
            family = below(below(all, model), families[i].key);
            take(unit ? below(family, unit) : family, rest, labels, strtod(value, NULL));
        }
        json_decref(labels);
    }
}

json_t *report_metrics(const char *text)
{
    json_t *all = json_object();

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        take_line(all, line);
    }
    return all;
}
