/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/merge.h"

#include <ctype.h>

#include "base/json_text.h"
#include "base/near_word.h"
#include "model/open_shapes.h"
#include "model/segment/segment_name.h"
#include "pipeline/plan.h"
#include "tuner/search/search.h"

#define MODELS_MAX 64u

int dmn_config_fail(const struct dmn_config_reader *r, const char *key, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(r->error, DMN_CONFIG_ERROR_MAX, "%.400s:%zu: %.100s%s%s", r->path,
             dmn_config_line(r->text, key), key, *key ? ": " : "", text);
    return -EINVAL;
}

static int set_socket_mode(const struct dmn_config_reader *r, const char *key, const char *text)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);

    if (!*text || *end || mode > 0777 || !isdigit((unsigned char)text[0])) {
        return dmn_config_fail(r, key, "\"%s\" is not an octal mode such as \"0660\"", text);
    }
    return 0;
}

static int set_value(const struct dmn_config_reader *r, const struct dmn_config_row *row,
                     const json_t *value)
{
    struct dmn_config_value *v = &r->config->values[row->id];
    int error = 0;

    if (v->origin == r->origin) {
        return dmn_config_fail(r, row->key, "is given twice in this file");
    }
    switch (row->type) {
    case DMN_CONFIG_INT:
        if (!json_is_integer(value)) {
            return dmn_config_fail(r, row->key, "must be a whole number (%s)", row->unit);
        }
        if (json_integer_value(value) < row->min || json_integer_value(value) > row->max) {
            return dmn_config_fail(r, row->key, "%lld is outside %lld..%lld %s",
                                   (long long)json_integer_value(value), (long long)row->min,
                                   (long long)row->max, row->unit);
        }
        v->number = json_integer_value(value);
        break;
    case DMN_CONFIG_BOOL:
        if (!json_is_boolean(value)) {
            return dmn_config_fail(r, row->key, "must be true or false");
        }
        v->number = json_is_true(value);
        break;
    case DMN_CONFIG_STRING:
        if (!json_is_string(value)) {
            return dmn_config_fail(r, row->key, "must be a string");
        }
        if (json_string_length(value) > (size_t)row->max ||
            strlen(json_string_value(value)) != json_string_length(value)) {
            return dmn_config_fail(r, row->key, "must have at most %lld bytes and no NUL",
                                   (long long)row->max);
        }
        if (row->id == DMN_KEY_SOCKET_MODE) {
            error = set_socket_mode(r, row->key, json_string_value(value));
        } else if (row->id == DMN_KEY_PLANNER_ALGORITHM) {
            error = tun_algorithm_find(json_string_value(value)) /* as retunes do */
                        ? 0
                        : dmn_config_fail(r, row->key, "must be one of " TUN_SEARCH_NAMES);
        } else if (row->id == DMN_KEY_LIMIT_USER_WEIGHTS &&
                   !dmn_config_weights_ok(json_string_value(value))) {
            error = dmn_config_fail(r, row->key,
                                    "\"%.100s\" is not UID=WEIGHT,..., with weights 1 to 1000 "
                                    "and each UID once",
                                    json_string_value(value));
        }
        error = error ? error : dmn_config_set_string(&v->text, json_string_value(value));
        break;
    case DMN_CONFIG_ENUM:
        if (!json_is_string(value) || dmn_config_choice(row, json_string_value(value)) < 0) {
            return dmn_config_fail(r, row->key, "must be one of %s", row->choices);
        }
        v->number = dmn_config_choice(row, json_string_value(value));
        break;
    }
    v->origin = r->origin;
    v->line = dmn_config_line(r->text, row->key);
    return error;
}

/* Core numbers as text, or as a list, which is how Status shows them. */
static bool is_cores(json_t *value)
{
    if (json_is_string(value)) {
        return true;
    }
    json_text_each(value, i, core) {
        if (!json_is_integer(core) || json_integer_value(core) < 0 ||
            json_integer_value(core) > UINT16_MAX) {
            return false;
        }
    }
    return json_array_size(value) > 0 && json_array_size(value) <= PL_CPU_MAX;
}

/* Return: such a value as text, owned by the caller; NULL: out of memory. */
static char *cores_text(json_t *value)
{
    char text[PL_CPU_MAX * sizeof("65535,")] = "";

    if (json_is_string(value)) {
        return strdup(json_string_value(value));
    }
    json_text_each(value, i, core) {
        base_append(text, sizeof(text), "%s%d", i ? "," : "", (int)json_integer_value(core));
    }
    return strdup(text);
}

/* Offers the last word of each known key that begins with @prefix. */
static int unknown_key(const struct dmn_config_reader *r, const char *at, const char *prefix,
                       const char *name)
{
    struct near_word n = {.given = name};
    char hint[NEAR_WORD_HINT_BYTES];
    size_t bytes = strlen(prefix);

    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        if (strncmp(dmn_config_rows[i].key, prefix, bytes) == 0) {
            near_word_try(&n, dmn_config_rows[i].key + bytes);
        }
    }
    return dmn_config_fail(r, at, "unknown key%s", near_word_hint(&n, hint));
}

/* Return: the row of a key of the objects in @array; NULL: there is none, and @hint offers one. */
static const struct dmn_config_item_row *item_row(const char *array, const char *key,
                                                  char hint[NEAR_WORD_HINT_BYTES])
{
    struct near_word n = {.given = key};

    for (size_t i = 0; i < DMN_CONFIG_ITEM_COUNT; i++) {
        const struct dmn_config_item_row *row = &dmn_config_item_rows[i];

        if (strcmp(row->array, array) == 0) {
            if (strcmp(row->key, key) == 0) {
                return row;
            }
            near_word_try(&n, row->key);
        }
    }
    near_word_hint(&n, hint);
    return NULL;
}

/* As dmn_config_fail(), of @key of models[i] or eps[i]; "": of the object. */
__attribute__((format(printf, 5, 6))) static int fail_item(const struct dmn_config_reader *r,
                                                           const char *array, size_t index,
                                                           const char *key, const char *format, ...)
{
    char path[128], text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(path, sizeof(path), "%s[%zu]%s%.60s", array, index, *key ? "." : "", key);
    return dmn_config_fail(r, path, "%s", text);
}

/* Return: what is wrong with a value's type; NULL: nothing. */
static const char *wrong_type(const char *type, json_t *value)
{
    return strcmp(type, "string") == 0   ? json_is_string(value) ? NULL : "must be a string"
           : strcmp(type, "shapes") == 0 ? json_is_string(value) || json_is_object(value)
                                               ? NULL
                                               : "must be a string, or an object of shapes"
           : strcmp(type, "bool") == 0   ? json_is_boolean(value) ? NULL : "must be true or false"
           : strcmp(type, "cores") == 0
               ? is_cores(value) ? NULL : "must be a string or a list of cores"
           : json_is_number(value) ? NULL
                                   : "must be a number";
}

/* Checks models[i] or eps[i] against the table: keys known, types right, required keys present. */
static int check_item(const struct dmn_config_reader *r, const char *array, size_t index,
                      json_t *item)
{
    const struct dmn_config_item_row *row;
    char hint[NEAR_WORD_HINT_BYTES];
    const char *key, *why;
    json_t *value;

    if (!json_is_object(item)) {
        return fail_item(r, array, index, "", "must be an object");
    }
    json_object_foreach(item, key, value)
    {
        row = item_row(array, key, hint);
        if (!row) {
            return fail_item(r, array, index, key, "unknown key%s", hint);
        }
        why = wrong_type(row->type, value);
        if (!why && json_is_string(value) &&
            (strlen(json_string_value(value)) != json_string_length(value) ||
             json_string_length(value) > 4095)) {
            why = "must have at most 4095 bytes and no NUL";
        }
        if (why) {
            return fail_item(r, array, index, key, "%s", why);
        }
    }
    for (size_t i = 0; i < DMN_CONFIG_ITEM_COUNT; i++) {
        row = &dmn_config_item_rows[i];
        if (row->required && strcmp(row->array, array) == 0 && !json_object_get(item, row->key)) {
            return fail_item(r, array, index, row->key, "is missing");
        }
    }
    return 0;
}

/* A relative path starts at the folder of the file that contains it. */
static char *resolve(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    char *ret;

    if (path[0] == '/' || !slash) {
        return strdup(path);
    }
    return asprintf(&ret, "%.*s/%s", (int)(slash - file), file, path) < 0 ? NULL : ret;
}

/* Return: 0; -EINVAL, also when out of memory. */
static int merge_boards(const struct dmn_config_reader *r, size_t index, json_t *item,
                        struct dmn_config_model *m)
{
    const char *text =
        json_text_of(item, "boards")[0] ? json_text_of(item, "boards") : DMN_BOARDS_OFF;
    base_autofree struct dmn_route_text *route = calloc(1, sizeof(*route));
    char why[DMN_ROUTE_ERROR_MAX] = "out of memory";

    if (!route || (strcmp(text, DMN_BOARDS_OFF) != 0 && strcmp(text, DMN_BOARDS_AUTO) != 0 &&
                   dmn_route_text_parse(text, why, route) != 0)) {
        return fail_item(r, "models", index, "boards", "%s", why);
    }
    return dmn_config_set_string(&m->boards, text) < 0 ? -EINVAL : 0;
}

/* Return: 0; -EINVAL, also when out of memory. */
static int merge_shapes(const struct dmn_config_reader *r, size_t index, json_t *item,
                        struct dmn_config_model *m)
{
    json_t *value = json_object_get(item, "shapes");
    char why[MDL_ERROR_MAX] = "out of memory";
    base_autofree char *text =
        json_is_object(value) ? mdl_shapes_text(value, why) : strdup(json_text_of(item, "shapes"));

    if (!text || mdl_shapes_check(text, why) < 0) {
        return fail_item(r, "models", index, "shapes", "%s", why);
    }
    return dmn_config_set_string(&m->shapes, text) < 0 ? -EINVAL : 0;
}

static int merge_wishes(const struct dmn_config_reader *r, size_t index, json_t *item,
                        struct dmn_config_model *m)
{
    char why[DMN_WISH_ERROR_MAX];
    const char *key;

    m->wishes = DMN_WISHES_NULL;
    return dmn_wishes_read(item, &m->wishes, &key, why) < 0
               ? fail_item(r, "models", index, key, "%s", why)
               : 0;
}

static int merge_model(const struct dmn_config_reader *r, size_t index, json_t *item)
{
    const char *name = json_text_of(item, "name");
    struct dmn_config_model *m;
    char key[64];
    char *path;

    if (!dmn_config_name_ok(name)) {
        return fail_item(r, "models", index, "name",
                         "\"%.80s\" is not a model name (" MDL_SEGMENT_NAME_RULE ")", name);
    }
    if (!json_text_of(item, "path")[0]) {
        return fail_item(r, "models", index, "path", "must not be empty");
    }
    path = resolve(r->path, json_text_of(item, "path"));
    m = path ? dmn_config_model_slot(r->config, name) : NULL;
    if (!m) {
        free(path);
        return -ENOMEM;
    }
    free(m->path);
    m->path = path;
    m->latest = json_is_true(json_object_get(item, "latest"));
    m->origin = r->origin;
    snprintf(key, sizeof(key), "models[%zu]", index);
    m->line = dmn_config_line(r->text, key);
    if (dmn_config_set_string(&m->plan, json_text_of(item, "plan")) < 0 ||
        dmn_config_set_string(&m->kernels, json_text_of(item, "kernels")) < 0) {
        return -ENOMEM;
    }
    if (merge_boards(r, index, item, m) < 0 || merge_shapes(r, index, item, m) < 0 ||
        merge_wishes(r, index, item, m) < 0) {
        return -EINVAL;
    }
    path = json_text_of(item, "calibration")[0]
               ? resolve(r->path, json_text_of(item, "calibration"))
               : strdup("");
    if (!path) {
        return -ENOMEM;
    }
    free(m->calibration);
    m->calibration = path;
    return 0;
}

static int merge_models(const struct dmn_config_reader *r, json_t *value)
{
    if (!json_is_array(value)) {
        return dmn_config_fail(r, "models", "must be a list");
    }
    if (json_array_size(value) > MODELS_MAX) {
        return dmn_config_fail(r, "models", "must be a list of at most %u", MODELS_MAX);
    }
    json_text_each(value, index, item) {
        int error = check_item(r, "models", index, item);

        for (size_t other = 0; !error && other < index; other++) {
            if (strcmp(json_text_of(json_array_get(value, other), "name"),
                       json_text_of(item, "name")) == 0) {
                return fail_item(r, "models", index, "name", "\"%.63s\" is listed twice",
                                 json_text_of(item, "name"));
            }
        }
        error = error ? error : merge_model(r, index, item);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

static int merge_eps(const struct dmn_config_reader *r, json_t *value)
{
    if (!json_is_array(value) || json_array_size(value) > 16) {
        return dmn_config_fail(r, "eps", "must be a list of at most 16");
    }
    dmn_config_eps_free(r->config);
    r->config->eps_origin = r->origin;
    r->config->eps_line = dmn_config_line(r->text, "eps");
    r->config->eps = calloc(json_array_size(value) + 1, sizeof(*r->config->eps));
    if (!r->config->eps) {
        return -ENOMEM;
    }
    json_text_each(value, index, item) {
        struct dmn_config_ep *ep = &r->config->eps[index];
        json_t *speed = json_object_get(item, "speed");
        int error = check_item(r, "eps", index, item);
        const char *name = json_text_of(item, "name");

        if (error) {
            return error;
        }
        if (!isalpha((unsigned char)name[0]) || strlen(name) > 23 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
                strlen(name)) {
            return fail_item(r, "eps", index, "name",
                             "\"%.80s\" is not a name of an execution place (letters, digits, '_', "
                             "at most 23)",
                             name);
        }
        for (size_t i = 0; i < index; i++) {
            if (strcmp(r->config->eps[i].name, name) == 0) {
                return fail_item(r, "eps", index, "name", "\"%s\" is listed twice", name);
            }
        }
        ep->speed = speed ? json_number_value(speed) : 1.0;
        if (!(ep->speed > 0 && ep->speed <= 1)) {
            return fail_item(r, "eps", index, "speed", "must be above 0 and at most 1");
        }
        ep->watts = json_number_value(json_object_get(item, "watts"));
        if (!(ep->watts >= 0 && ep->watts <= 10000)) {
            return fail_item(r, "eps", index, "watts", "must be from 0 to 10000");
        }
        ep->name = strdup(name);
        ep->cpus = cores_text(json_object_get(item, "cpus"));
        r->config->ep_count = index + 1;
        if (!ep->name || !ep->cpus) {
            return -ENOMEM;
        }
    }
    return 0;
}

int dmn_config_merge(const struct dmn_config_reader *r, json_t *object, const char *prefix)
{
    const char *name;
    json_t *value;

    json_object_foreach(object, name, value)
    {
        const struct dmn_config_row *row = NULL;
        char key[160], group[168];
        bool is_group = false;
        int error;

        snprintf(key, sizeof(key), "%s%.100s", prefix, name);
        snprintf(group, sizeof(group), "%s.", key);
        for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
            if (strcmp(dmn_config_rows[i].key, key) == 0) {
                row = &dmn_config_rows[i];
            }
            is_group |= strncmp(dmn_config_rows[i].key, group, strlen(group)) == 0;
        }
        if (row) {
            error = set_value(r, row, value);
        } else if (!*prefix && strcmp(key, "models") == 0) {
            error = merge_models(r, value);
        } else if (!*prefix && strcmp(key, "eps") == 0) {
            error = merge_eps(r, value);
        } else if (is_group) {
            error = json_is_object(value) ? dmn_config_merge(r, value, group)
                                          : dmn_config_fail(r, key, "must be an object");
        } else {
            error = unknown_key(r, key, prefix, name);
        }
        if (error < 0) {
            return error;
        }
    }
    return 0;
}
