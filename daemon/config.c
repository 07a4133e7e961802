/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base.h"
#include "pipeline/plan.h"
#include "tuner/search.h"

/* One file while it is merged. */
struct reader {
    struct dmn_config *config;
    const char *path, *text; /* text: stripped, for line numbers */
    size_t origin;
    char *error;
};

__attribute__((format(printf, 3, 4))) static int fail(const struct reader *r, const char *key,
                                                      const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(r->error, DMN_CONFIG_ERROR_MAX, "%.400s:%zu: %.100s: %s", r->path,
             dmn_config_line(r->text, key), key, text);
    return -EINVAL;
}

static int set_string(char **to, const char *value)
{
    char *copy = strdup(value);

    if (!copy) {
        return -ENOMEM;
    }
    free(*to);
    *to = copy;
    return 0;
}

bool dmn_config_name_ok(const char *name)
{
    size_t bytes = strlen(name);

    return bytes > 0 && bytes < DMN_CONFIG_NAME_MAX && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               bytes;
}

static int set_socket_mode(const struct reader *r, const char *key, const char *text)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);

    if (!*text || *end || mode > 0777 || !isdigit((unsigned char)text[0])) {
        return fail(r, key, "\"%s\" is no octal mode such as \"0660\"", text);
    }
    return 0;
}

/* The names that retunes accept. */
static int check_algorithm(const struct reader *r, const char *key, const char *text)
{
    const struct tun_algorithm *const *all;
    char names[384] = "";
    size_t count, used = 0;

    if (tun_algorithm_find(text)) {
        return 0;
    }
    all = tun_algorithms(&count);
    for (size_t i = 0; i < count && used < sizeof(names); i++) {
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 all[i]->name);
    }
    return fail(r, key, "must be one of %s", names);
}

static int set_value(const struct reader *r, const struct dmn_config_row *row, const json_t *value)
{
    struct dmn_config_value *v = &r->config->values[row->id];
    int error = 0;

    switch (row->type) {
    case DMN_CONFIG_INT:
        if (!json_is_integer(value)) {
            return fail(r, row->key, "must be a whole number (%s)", row->unit);
        }
        if (json_integer_value(value) < row->min || json_integer_value(value) > row->max) {
            return fail(r, row->key, "%lld is outside %lld..%lld %s",
                        (long long)json_integer_value(value), (long long)row->min,
                        (long long)row->max, row->unit);
        }
        v->number = json_integer_value(value);
        break;
    case DMN_CONFIG_BOOL:
        if (!json_is_boolean(value)) {
            return fail(r, row->key, "must be true or false");
        }
        v->number = json_is_true(value);
        break;
    case DMN_CONFIG_STRING:
        if (!json_is_string(value)) {
            return fail(r, row->key, "must be a string");
        }
        if (json_string_length(value) > (size_t)row->max ||
            strlen(json_string_value(value)) != json_string_length(value)) {
            return fail(r, row->key, "must have at most %lld bytes and no NUL",
                        (long long)row->max);
        }
        if (row->id == DMN_KEY_SOCKET_MODE) {
            error = set_socket_mode(r, row->key, json_string_value(value));
        } else if (row->id == DMN_KEY_PLANNER_ALGORITHM) {
            error = check_algorithm(r, row->key, json_string_value(value));
        }
        error = error ? error : set_string(&v->text, json_string_value(value));
        break;
    case DMN_CONFIG_ENUM:
        if (!json_is_string(value) || dmn_config_choice(row, json_string_value(value)) < 0) {
            return fail(r, row->key, "must be one of %s", row->choices);
        }
        v->number = dmn_config_choice(row, json_string_value(value));
        break;
    }
    v->origin = r->origin;
    v->line = dmn_config_line(r->text, row->key);
    return error;
}

/* Core numbers as text, or as a list of them (that is how the status shows them). */
static bool is_cores(json_t *value)
{
    size_t i;
    json_t *core;

    if (json_is_string(value)) {
        return true;
    }
    json_array_foreach(value, i, core)
    {
        if (!json_is_integer(core) || json_integer_value(core) < 0 ||
            json_integer_value(core) > UINT16_MAX) {
            return false;
        }
    }
    return json_array_size(value) > 0 && json_array_size(value) <= PL_CPU_MAX;
}

/* Return: such a value as text, owned by the caller; NULL without memory. */
static char *cores_text(json_t *value)
{
    char text[PL_CPU_MAX * sizeof("65535,")] = "";
    size_t i, used = 0;
    json_t *core;

    if (json_is_string(value)) {
        return strdup(json_string_value(value));
    }
    json_array_foreach(value, i, core)
    {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? "," : "",
                                 (int)json_integer_value(core));
    }
    return strdup(text);
}

static bool is_of_type(const char *type, json_t *value)
{
    return strcmp(type, "string") == 0  ? json_is_string(value)
           : strcmp(type, "bool") == 0  ? json_is_boolean(value)
           : strcmp(type, "cores") == 0 ? is_cores(value)
                                        : json_is_number(value);
}

/* Checks the keys of models[i] or eps[i] against the table: known, of the right type, required ones
 * there. */
static int check_item(const struct reader *r, const char *array, size_t index, json_t *item)
{
    const struct dmn_config_item_row *rows, *row;
    char path[128];
    const char *key;
    json_t *value;
    size_t count;

    rows = dmn_config_item_table(&count);
    snprintf(path, sizeof(path), "%s[%zu]", array, index);
    if (!json_is_object(item)) {
        return fail(r, path, "must be an object");
    }
    json_object_foreach(item, key, value)
    {
        row = NULL;
        for (size_t i = 0; i < count && !row; i++) {
            if (strcmp(rows[i].array, array) == 0 && strcmp(rows[i].key, key) == 0) {
                row = &rows[i];
            }
        }
        snprintf(path, sizeof(path), "%s[%zu].%.60s", array, index, key);
        if (!row) {
            return fail(r, path, "unknown key");
        }
        if (!is_of_type(row->type, value)) {
            return fail(r, path,
                        strcmp(row->type, "cores") == 0 ? "must be text or a list of %s"
                                                        : "must be a %s",
                        row->type);
        }
        if (json_is_string(value) &&
            (strlen(json_string_value(value)) != json_string_length(value) ||
             json_string_length(value) > 4095)) {
            return fail(r, path, "must have at most 4095 bytes and no NUL");
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (rows[i].required && strcmp(rows[i].array, array) == 0 &&
            !json_object_get(item, rows[i].key)) {
            snprintf(path, sizeof(path), "%s[%zu].%s", array, index, rows[i].key);
            return fail(r, path, "is missing");
        }
    }
    return 0;
}

static void model_deinit(struct dmn_config_model *m)
{
    free(m->name);
    free(m->path);
    free(m->plan);
    free(m->kernels);
    free(m->calibration);
}

/* The model of that name, made if there is none. */
static struct dmn_config_model *model_slot(struct dmn_config *c, const char *name)
{
    struct dmn_config_model *grown;

    for (size_t i = 0; i < c->model_count; i++) {
        if (strcmp(c->models[i].name, name) == 0) {
            return &c->models[i];
        }
    }
    grown = realloc(c->models, (c->model_count + 1) * sizeof(*grown));
    if (!grown) {
        return NULL;
    }
    c->models = grown;
    grown = &c->models[c->model_count];
    *grown = (struct dmn_config_model){.name = strdup(name),
                                       .path = strdup(""),
                                       .plan = strdup(""),
                                       .kernels = strdup(""),
                                       .calibration = strdup("")};
    if (!grown->name || !grown->path || !grown->plan || !grown->kernels || !grown->calibration) {
        model_deinit(grown);
        return NULL;
    }
    c->model_count++;
    return grown;
}

/* A relative path starts at the folder of the file that names it. */
static char *resolve(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    char *ret;

    if (path[0] == '/' || !slash) {
        return strdup(path);
    }
    return asprintf(&ret, "%.*s/%s", (int)(slash - file), file, path) < 0 ? NULL : ret;
}

static const char *item_string(json_t *item, const char *key)
{
    const char *s = json_string_value(json_object_get(item, key));

    return s ? s : "";
}

static int merge_model(const struct reader *r, size_t index, json_t *item)
{
    const char *name = item_string(item, "name");
    struct dmn_config_model *m;
    char key[64];
    char *path;

    snprintf(key, sizeof(key), "models[%zu].name", index);
    if (!dmn_config_name_ok(name)) {
        return fail(r, key,
                    "\"%.80s\" is no model name (letters, digits, '.', '_', '-', at most 63)",
                    name);
    }
    snprintf(key, sizeof(key), "models[%zu].path", index);
    if (!item_string(item, "path")[0]) {
        return fail(r, key, "must not be empty");
    }
    path = resolve(r->path, item_string(item, "path"));
    m = path ? model_slot(r->config, name) : NULL;
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
    if (set_string(&m->plan, item_string(item, "plan")) < 0 ||
        set_string(&m->kernels, item_string(item, "kernels")) < 0) {
        return -ENOMEM;
    }
    path = item_string(item, "calibration")[0] ? resolve(r->path, item_string(item, "calibration"))
                                               : strdup("");
    if (!path) {
        return -ENOMEM;
    }
    free(m->calibration);
    m->calibration = path;
    return 0;
}

static int merge_models(const struct reader *r, json_t *value)
{
    size_t index, other, limit = 64;
    json_t *item;

    if (!json_is_array(value)) {
        return fail(r, "models", "must be a list");
    }
    if (json_array_size(value) > limit) {
        return fail(r, "models", "more than %zu", limit);
    }
    json_array_foreach(value, index, item)
    {
        int error = check_item(r, "models", index, item);

        for (other = 0; !error && other < index; other++) {
            char key[64];

            if (strcmp(item_string(json_array_get(value, other), "name"),
                       item_string(item, "name")) == 0) {
                snprintf(key, sizeof(key), "models[%zu].name", index);
                return fail(r, key, "\"%.63s\" is there twice", item_string(item, "name"));
            }
        }
        error = error ? error : merge_model(r, index, item);
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

static void eps_free(struct dmn_config *c)
{
    for (size_t i = 0; i < c->ep_count; i++) {
        free(c->eps[i].name);
        free(c->eps[i].cpus);
    }
    free(c->eps);
    c->eps = NULL;
    c->ep_count = 0;
}

static int merge_eps(const struct reader *r, json_t *value)
{
    size_t index;
    json_t *item;

    if (!json_is_array(value) || json_array_size(value) > 16) {
        return fail(r, "eps", "must be a list of at most 16");
    }
    eps_free(r->config);
    r->config->eps_origin = r->origin;
    r->config->eps_line = dmn_config_line(r->text, "eps");
    r->config->eps = calloc(json_array_size(value) + 1, sizeof(*r->config->eps));
    if (!r->config->eps) {
        return -ENOMEM;
    }
    json_array_foreach(value, index, item)
    {
        struct dmn_config_ep *ep = &r->config->eps[index];
        json_t *speed = json_object_get(item, "speed");
        int error = check_item(r, "eps", index, item);
        const char *name = item_string(item, "name");
        char key[64];

        if (error) {
            return error;
        }
        snprintf(key, sizeof(key), "eps[%zu].name", index);
        if (!isalpha((unsigned char)name[0]) || strlen(name) > 23 ||
            strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") !=
                strlen(name)) {
            return fail(r, key, "\"%.80s\" is no name of an execution place", name);
        }
        for (size_t i = 0; i < index; i++) {
            if (strcmp(r->config->eps[i].name, name) == 0) {
                return fail(r, key, "\"%s\" is there twice", name);
            }
        }
        ep->speed = speed ? json_number_value(speed) : 1.0;
        if (!(ep->speed > 0 && ep->speed <= 1)) {
            snprintf(key, sizeof(key), "eps[%zu].speed", index);
            return fail(r, key, "must be above 0 and at most 1");
        }
        ep->watts = json_number_value(json_object_get(item, "watts"));
        if (!(ep->watts >= 0 && ep->watts <= 10000)) {
            snprintf(key, sizeof(key), "eps[%zu].watts", index);
            return fail(r, key, "must be from 0 to 10000");
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

/* Merges one object; @prefix: "" or "limits.". */
static int merge_object(const struct reader *r, json_t *object, const char *prefix)
{
    const struct dmn_config_row *rows;
    size_t count;
    const char *name;
    json_t *value;

    rows = dmn_config_table(&count);
    json_object_foreach(object, name, value)
    {
        const struct dmn_config_row *row = NULL;
        char key[160], group[168];
        bool is_group = false;
        int error;

        snprintf(key, sizeof(key), "%s%.100s", prefix, name);
        snprintf(group, sizeof(group), "%s.", key);
        for (size_t i = 0; i < count; i++) {
            if (strcmp(rows[i].key, key) == 0) {
                row = &rows[i];
            }
            is_group |= strncmp(rows[i].key, group, strlen(group)) == 0;
        }
        if (row) {
            error = set_value(r, row, value);
        } else if (!*prefix && strcmp(key, "models") == 0) {
            error = merge_models(r, value);
        } else if (!*prefix && strcmp(key, "eps") == 0) {
            error = merge_eps(r, value);
        } else if (is_group) {
            error = json_is_object(value) ? merge_object(r, value, group)
                                          : fail(r, key, "must be an object");
        } else {
            error = fail(r, key, "unknown key");
        }
        if (error < 0) {
            return error;
        }
    }
    return 0;
}

/* Reads a whole regular file of bounded size. */
static int read_file(const char *path, char *ret_error, char **ret_text, size_t *ret_bytes)
{
    base_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    base_autofree char *text = NULL;
    struct stat st;
    size_t used = 0;
    int error = 0;

    if (fd < 0 || fstat(fd, &st) < 0) {
        error = -errno;
    } else if (!S_ISREG(st.st_mode)) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: is no regular file", path);
        return -EINVAL;
    } else if (st.st_size > (off_t)DMN_CONFIG_FILE_MAX) {
        error = -EFBIG;
    }
    if (error) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: %s", path, strerror(-error));
        return error;
    }
    text = malloc(DMN_CONFIG_FILE_MAX + 1);
    if (!text) {
        return -ENOMEM;
    }
    while (used < DMN_CONFIG_FILE_MAX) {
        ssize_t n = read(fd, text + used, DMN_CONFIG_FILE_MAX - used);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            error = -errno;
            snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: %s", path, strerror(-error));
            return error;
        }
        if (n == 0) {
            break;
        }
        used += (size_t)n;
    }
    text[used] = '\0';
    *ret_text = base_take(text);
    *ret_bytes = used;
    return 0;
}

static int merge_file(struct dmn_config *c, const char *path, char *ret_error)
{
    base_autofree char *text = NULL;
    struct reader r = {.config = c, .path = path, .error = ret_error};
    json_error_t json_error;
    json_t *root;
    size_t bytes = 0;
    int error;

    if (c->file_count >= base_array_count(c->files)) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: more than %u configuration files", path,
                 DMN_CONFIG_FILES_MAX);
        return -EINVAL;
    }
    error = read_file(path, ret_error, &text, &bytes);
    if (error < 0) {
        return error;
    }
    r.origin = c->file_count;
    c->files[c->file_count] = strdup(path);
    if (!c->files[c->file_count++]) {
        return -ENOMEM;
    }
    dmn_config_strip(text, bytes);
    if (strspn(text, " \t\r\n") == bytes) { /* nothing but comments */
        return 0;
    }
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &json_error);
    if (!root) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s:%d: %.300s", path, json_error.line,
                 json_error.text);
        return -EINVAL;
    }
    r.text = text;
    error = json_is_object(root) ? merge_object(&r, root, "") : fail(&r, "", "must be an object");
    json_decref(root);
    return error;
}

static int is_dropin(const struct dirent *e)
{
    size_t bytes = strlen(e->d_name);

    return e->d_name[0] != '.' && bytes > 5 && strcmp(e->d_name + bytes - 5, ".json") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name,
                  (*b)->d_name); /* not strcoll: the order must not depend on the locale */
}

static int merge_dropins(struct dmn_config *c, const char *path, char *ret_error)
{
    struct dirent **list = NULL;
    char file[4096];
    int count, error = 0;

    snprintf(file, sizeof(file), "%.4000s.d", path);
    count = scandir(file, &list, is_dropin, by_name);
    for (int i = 0; i < count; i++) {
        if (!error) {
            snprintf(file, sizeof(file), "%.3800s.d/%.255s", path, list[i]->d_name);
            error = merge_file(c, file, ret_error);
        }
        free(list[i]);
    }
    free(list);
    return error;
}

int dmn_config_load(const char *path, bool required, char *ret_error, struct dmn_config **ret)
{
    const struct dmn_config_row *rows;
    struct dmn_config *c = calloc(1, sizeof(*c));
    size_t count;
    int error = 0;

    snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "out of memory");
    if (!c) {
        return -ENOMEM;
    }
    rows = dmn_config_table(&count);
    for (size_t i = 0; i < count; i++) {
        c->values[i].number = rows[i].value;
        if (rows[i].type == DMN_CONFIG_STRING && set_string(&c->values[i].text, rows[i].text) < 0) {
            error = -ENOMEM;
        }
    }
    c->files[DMN_ORIGIN_DEFAULT] = strdup("default");
    c->files[DMN_ORIGIN_ARGUMENT] = strdup("command line");
    c->file_count = 2;
    if (!c->files[0] || !c->files[1]) {
        error = -ENOMEM;
    }
    if (!error && path && (required || access(path, F_OK) == 0)) {
        error = merge_file(c, path, ret_error);
    }
    if (!error && path) {
        error = merge_dropins(c, path, ret_error);
    }
    if (!error && c->values[DMN_KEY_PLANNER_OBJECTIVE].number == TUN_POWER &&
        c->values[DMN_KEY_PLANNER_FPS].number == 0) {
        const struct dmn_config_value *v = &c->values[DMN_KEY_PLANNER_OBJECTIVE];

        snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                 "%.400s:%zu: planner.objective: \"power\" needs a frame rate to hold, planner.fps",
                 c->files[v->origin], v->line);
        error = -EINVAL;
    }
    if (error) {
        dmn_config_free(c);
        return error;
    }
    *ret = c;
    return 0;
}

struct dmn_config *dmn_config_free(struct dmn_config *c)
{
    if (!c) {
        return NULL;
    }
    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        free(c->values[i].text);
    }
    for (size_t i = 0; i < c->model_count; i++) {
        model_deinit(&c->models[i]);
    }
    free(c->models);
    eps_free(c);
    for (size_t i = 0; i < c->file_count; i++) {
        free(c->files[i]);
    }
    free(c);
    return NULL;
}

int dmn_config_add_model(struct dmn_config *c, const char *name, const char *path, char *ret_error)
{
    struct dmn_config_model *m;

    if (!dmn_config_name_ok(name)) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
                 "--model: \"%.80s\" is no model name (letters, digits, '.', '_', '-', at most 63)",
                 name);
        return -EINVAL;
    }
    m = model_slot(c, name);
    if (!m) {
        return -ENOMEM;
    }
    m->origin = DMN_ORIGIN_ARGUMENT;
    return set_string(&m->path, path);
}

static json_t *value_json(const struct dmn_config_row *row, int64_t number, const char *text)
{
    char name[32];

    switch (row->type) {
    case DMN_CONFIG_INT:
        return json_integer(number);
    case DMN_CONFIG_BOOL:
        return json_boolean(number);
    case DMN_CONFIG_STRING:
        return json_string(text ? text : "");
    case DMN_CONFIG_ENUM:
        dmn_config_choice_name(row, (size_t)number, name, sizeof(name));
        return json_string(name);
    }
    return json_null();
}

static json_t *origin_json(const struct dmn_config *c, size_t origin, size_t line)
{
    return origin <= DMN_ORIGIN_ARGUMENT ? json_string(c->files[origin])
                                         : json_sprintf("%s:%zu", c->files[origin], line);
}

json_t *dmn_config_json(const struct dmn_config *c)
{
    const struct dmn_config_row *rows;
    json_t *list = json_array();
    size_t count;

    rows = dmn_config_table(&count);
    for (size_t i = 0; i < count; i++) {
        const struct dmn_config_value *v = &c->values[i];

        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:s, s:o, s:s}", "key", rows[i].key,
                                              "value", value_json(&rows[i], v->number, v->text),
                                              "origin", origin_json(c, v->origin, v->line), "unit",
                                              rows[i].unit, "default",
                                              value_json(&rows[i], rows[i].value, rows[i].text),
                                              "help", rows[i].help));
    }
    for (size_t i = 0; i < c->model_count; i++) {
        const struct dmn_config_model *m = &c->models[i];

        json_array_append_new(list,
                              json_pack("{s:o, s:{s:s, s:s, s:s, s:b, s:s, s:s}, s:o}", "key",
                                        json_sprintf("models[%zu]", i), "value", "name", m->name,
                                        "path", m->path, "plan", m->plan, "latest", m->latest,
                                        "kernels", m->kernels, "calibration", m->calibration,
                                        "origin", origin_json(c, m->origin, m->line)));
    }
    for (size_t i = 0; i < c->ep_count; i++) {
        const struct dmn_config_ep *e = &c->eps[i];

        json_array_append_new(list,
                              json_pack("{s:o, s:{s:s, s:s, s:f, s:f}, s:o}", "key",
                                        json_sprintf("eps[%zu]", i), "value", "name", e->name,
                                        "cpus", e->cpus, "speed", e->speed, "watts", e->watts,
                                        "origin", origin_json(c, c->eps_origin, c->eps_line)));
    }
    return list;
}
