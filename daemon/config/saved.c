/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/saved.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/state_file.h"
#include "model/open_shapes.h"

static void json_freep(json_t **j)
{
    json_decref(*j);
}

static const char *text(const json_t *entry, const char *key)
{
    const char *s = json_string_value(json_object_get(entry, key));

    return s && strlen(s) == json_string_length(json_object_get(entry, key)) ? s : "";
}

static bool good_shapes(const char *shapes)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    char error[MDL_ERROR_MAX];
    struct mdl_shapes parsed;

    return mdl_pool_new(0, &pool) == 0 && mdl_shapes_parse(shapes, pool, error, &parsed) == 0;
}

/* Reads the file. Return: new reference, {"models": [...]}; NULL: none that makes sense. */
static json_t *read_saved(const char *path, char *ret_note)
{
    json_t *root = NULL;
    int r = dmn_state_file_read(DMN_STATE_SAVED, path, &root);

    if (r == 0 && json_is_array(json_object_get(root, "models"))) {
        return root;
    }
    if (r != -ENOENT) {
        snprintf(ret_note, DMN_CONFIG_ERROR_MAX, "%.400s: not a list of saved models; left out",
                 path);
    }
    json_decref(root);
    return NULL;
}

static bool configured(const struct dmn_config *c, const char *name)
{
    for (size_t i = 0; i < c->model_count; i++) {
        if (strcmp(c->models[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static int add_saved(struct dmn_config *c, const json_t *entry, size_t origin)
{
    const char *name = text(entry, "name"), *path = text(entry, "path");
    struct dmn_config_model *m;

    if (!dmn_config_name_ok(name) || path[0] != '/' || !good_shapes(text(entry, "shapes")) ||
        configured(c, name)) {
        return 0;
    }
    m = dmn_config_model_slot(c, name);
    if (!m || dmn_config_set_string(&m->path, path) < 0 ||
        dmn_config_set_string(&m->plan, text(entry, "plan")) < 0 ||
        dmn_config_set_string(&m->shapes, text(entry, "shapes")) < 0) {
        return -ENOMEM;
    }
    m->origin = origin;
    m->line = 1;
    m->saved = true;
    return 0;
}

int dmn_saved_merge(struct dmn_config *c, const char *folder, char *ret_note)
{
    base_cleanup(json_freep) json_t *root = NULL;
    char path[DMN_STATE_PATH_MAX];
    json_t *entry;
    size_t i;
    int r = 0;

    ret_note[0] = '\0';
    if (!dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path) ||
        c->file_count >= base_array_count(c->files)) {
        return 0;
    }
    root = read_saved(path, ret_note);
    if (!root) {
        return 0;
    }
    c->files[c->file_count] = strdup(path);
    if (!c->files[c->file_count]) {
        return -ENOMEM;
    }
    c->file_count++;
    json_array_foreach(json_object_get(root, "models"), i, entry)
    {
        r = r < 0 ? r : add_saved(c, entry, c->file_count - 1);
    }
    return r;
}

/* Removes the entry of that name. Return: there was one. */
static bool drop(json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (strcmp(text(json_array_get(list, i), "name"), name) == 0) {
            json_array_remove(list, i);
            return true;
        }
    }
    return false;
}

/* Changes the file: without @entry it only removes. */
static int change(const char *folder, const char *name, json_t *entry)
{
    base_cleanup(json_freep) json_t *mine = entry;
    char path[DMN_STATE_PATH_MAX], note[DMN_CONFIG_ERROR_MAX];
    json_t *root, *list;
    bool there;

    if (!dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path)) {
        return -ENOENT;
    }
    root = read_saved(path, note);
    root = root ? root : json_pack("{s:[]}", "models");
    list = json_object_get(root, "models");
    there = drop(list, name);
    if (!mine && !there) {
        json_decref(root);
        return DMN_SAVED_E_NONE;
    }
    if (!list || (mine && json_array_append(list, mine) < 0)) {
        json_decref(root);
        return -ENOMEM;
    }
    return dmn_state_file_write(DMN_STATE_SAVED, path, root);
}

int dmn_saved_add(const char *folder, const char *name, const char *path, const char *plan,
                  const char *shapes)
{
    json_t *entry = json_pack("{s:s, s:s, s:s, s:s}", "name", name, "path", path, "plan", plan,
                              "shapes", shapes);

    return entry ? change(folder, name, entry) : -EINVAL; /* a path that is not UTF-8 */
}

int dmn_saved_remove(const char *folder, const char *name)
{
    return change(folder, name, NULL);
}
