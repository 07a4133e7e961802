/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/saved.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/config/state_file.h"
#include "model/open_shapes.h"

static const char *text(const json_t *entry, const char *key)
{
    const char *s = json_string_value(json_object_get(entry, key));

    return s && strlen(s) == json_string_length(json_object_get(entry, key)) ? s : "";
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

static int add_saved(struct dmn_config *c, const json_t *entry, size_t origin)
{
    const char *name = text(entry, "name"), *path = text(entry, "path");
    struct dmn_config_model *m;
    char unused[MDL_ERROR_MAX];

    if (!dmn_config_name_ok(name) || path[0] != '/' ||
        mdl_shapes_check(text(entry, "shapes"), unused) < 0 || dmn_config_find_model(c, name)) {
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
    json_auto_t *root = NULL;
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
    json_auto_t *mine = entry;
    char path[DMN_STATE_PATH_MAX], note[DMN_CONFIG_ERROR_MAX];
    json_t *root, *list;
    bool there;
    int r;

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
    r = dmn_state_file_write(DMN_STATE_SAVED, path, root);
    return r == DMN_STATE_E_TAKEN ? -EBUSY : r;
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
