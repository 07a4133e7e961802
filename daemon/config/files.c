/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the configuration's main file and its drop-ins, and merges each over the earlier ones. */
#include <dirent.h>

#include "base/base.h"
#include "base/json_text.h"
#include "base/whole_file.h"
#include "daemon/config/config.h"
#include "daemon/config/merge.h"
#include "tuner/problem.h"

static int merge_file(struct dmn_config *c, const char *path, char *ret_error)
{
    const struct whole_file file = {
        .folder = AT_FDCWD, .path = path, .bytes_max = DMN_CONFIG_FILE_MAX};
    base_autofree char *text = NULL;
    struct dmn_config_reader r = {.config = c, .path = path, .error = ret_error};
    json_error_t json_error;
    json_t *root;
    size_t bytes = 0;
    int error;

    if (c->file_count >= DMN_CONFIG_FILES_MAX + 2) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: more than %u configuration files", path,
                 DMN_CONFIG_FILES_MAX);
        return -EINVAL;
    }
    error = whole_file_read(&file, &text, &bytes);
    if (error) {
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: %s", path, whole_file_why(error));
        return error < 0 ? error : -EINVAL;
    }
    r.origin = c->file_count;
    c->files[c->file_count] = strdup(path);
    if (!c->files[c->file_count++]) {
        return -ENOMEM;
    }
    memset(text, ' ', json_text_mark(text, bytes));
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
    error = json_is_object(root) ? dmn_config_merge(&r, root, "")
                                 : dmn_config_fail(&r, "", "must be an object");
    json_decref(root);
    return error;
}

static int is_dropin(const struct dirent *e)
{
    return e->d_name[0] != '.' && base_ends_with(e->d_name, ".json");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name,
                  (*b)->d_name); /* not strcoll(): the order must not depend on the locale */
}

static int merge_dropins(struct dmn_config *c, const char *path, char *ret_error)
{
    struct dirent **list = NULL;
    char file[4096 + 4 + NAME_MAX];
    int count, error = 0;

    snprintf(file, sizeof(file), "%s.d", path);
    count = scandir(file, &list, is_dropin, by_name);
    if (count < 0) {
        error = -errno;
        if (error == -ENOENT && base_is_missing(file)) {
            return 0;
        }
        snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "%.400s: %s", file, strerror(-error));
        return error;
    }
    for (int i = 0; i < count; i++) {
        if (!error) {
            snprintf(file, sizeof(file), "%s.d/%s", path, list[i]->d_name);
            error = merge_file(c, file, ret_error);
        }
        free(list[i]);
    }
    free(list);
    return error;
}

int dmn_config_load(const char *path, bool required, char *ret_error, struct dmn_config **ret)
{
    struct dmn_config *c = calloc(1, sizeof(*c));
    int error = 0;

    snprintf(ret_error, DMN_CONFIG_ERROR_MAX, "out of memory");
    if (!c) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < DMN_KEY_COUNT; i++) {
        const struct dmn_config_row *row = &dmn_config_rows[i];

        c->values[i].number = row->value;
        if (row->type == DMN_CONFIG_STRING &&
            dmn_config_set_string(&c->values[i].text, row->text) < 0) {
            error = -ENOMEM;
        }
    }
    c->files[DMN_ORIGIN_DEFAULT] = strdup("default");
    c->files[DMN_ORIGIN_ARGUMENT] = strdup("command line");
    c->file_count = 2;
    if (!c->files[0] || !c->files[1]) {
        error = -ENOMEM;
    }
    if (!error && path && (required || !base_is_missing(path))) {
        error = merge_file(c, path, ret_error);
    }
    if (!error && path) {
        error = merge_dropins(c, path, ret_error);
    }
    if (!error && c->values[DMN_KEY_PLANNER_OBJECTIVE].number == TUN_POWER &&
        c->values[DMN_KEY_PLANNER_FPS].number == 0) {
        const struct dmn_config_value *v = &c->values[DMN_KEY_PLANNER_OBJECTIVE];

        snprintf(
            ret_error, DMN_CONFIG_ERROR_MAX,
            "%.400s:%zu: planner.objective: \"power\" needs planner.fps, the frame rate to hold",
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
