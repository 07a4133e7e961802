/* SPDX-License-Identifier: Apache-2.0 */
/* Models that "pipectl models load --save" keeps across restarts.
 *
 * They are in the state directory and not in the configuration, which is its author's. Each start
 * and reload reads them as if they stood behind the configuration; a configured model of the same
 * name takes precedence.
 *
 * A list that cannot be used is not an empty one. A reload then changes nothing, a check fails, and
 * no call changes the list; a start serves the rest, degraded. Only a start sets a damaged list
 * aside, once it has locked the directory. */
#include "daemon/config/state_file.h"

#include "base/base.h"
#include "base/json_text.h"
#include "daemon/config/config.h"
#include "model/open_shapes.h"

static const char *text(const json_t *entry, const char *key)
{
    const char *s = json_string_value(json_object_get(entry, key));

    return s && strlen(s) == json_string_length(json_object_get(entry, key)) ? s : "";
}

/* @ret_root: new reference, {"models": [...]}; NULL: there is no list. Return: 0; -errno with
 * @ret_error: it cannot be used. */
static int read_saved(const char *path, char *ret_error, json_t **ret_root)
{
    json_auto_t *root = NULL;
    const char *why = NULL;
    int r = dmn_state_file_look(DMN_STATE_SAVED, path, &root, &why);

    if (r == -ENOENT && base_is_missing(path)) {
        *ret_root = NULL;
        return 0;
    }
    if (r == 0 && json_is_array(json_object_get(root, "models"))) {
        *ret_root = json_incref(root);
        return 0;
    }
    snprintf(ret_error, DMN_CONFIG_ERROR_MAX,
             "%.400s: the list of saved models cannot be used: %s; put a good one there, or move "
             "it away and save the models again (pipectl models load NAME FILE --save); then "
             "pipectl reload",
             path, why ? why : "it holds something else");
    return r < 0 && r != -ENOENT ? r : -EBADMSG;
}

static int add_saved(struct dmn_config *c, const json_t *entry, size_t origin)
{
    const char *name = text(entry, "name"), *path = text(entry, "path");
    struct dmn_config_model *m;
    char unused[MDL_ERROR_MAX];
    const char *unused_key;

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
    /* written by piped itself; of a damaged one nothing is wished */
    (void)dmn_wishes_read(json_object_get(entry, "wishes"), &m->wishes, &unused_key, unused);
    m->origin = origin;
    m->line = 1;
    m->saved = true;
    return 0;
}

int dmn_saved_merge(struct dmn_config *c, const char *folder)
{
    char path[DMN_STATE_PATH_MAX], error[DMN_CONFIG_ERROR_MAX];
    json_auto_t *root = NULL;
    int r = 0;

    if (!dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path)) {
        return 0;
    }
    if (read_saved(path, error, &root) < 0) {
        return dmn_config_set_string(&c->saved_error, error);
    }
    if (!root) {
        return 0;
    }
    c->files[c->file_count] = strdup(path); /* it has a place of its own */
    if (!c->files[c->file_count]) {
        return -ENOMEM;
    }
    c->file_count++;
    json_text_each(json_object_get(root, "models"), i, entry) {
        r = r < 0 ? r : add_saved(c, entry, c->file_count - 1);
    }
    return r;
}

void dmn_saved_tidy(const char *folder)
{
    char path[DMN_STATE_PATH_MAX];
    json_t *root = NULL;

    if (dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path)) {
        (void)dmn_state_file_read(DMN_STATE_SAVED, path, NULL, &root);
        json_decref(root);
    }
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

/* Puts @with in place of the entry of its name; one without a path only removes that. Takes @with.
 */
static int write_change(const char *path, json_t *with)
{
    json_auto_t *mine = with;
    bool adds = json_object_get(mine, "path") != NULL, there;
    char unused[DMN_CONFIG_ERROR_MAX];
    json_t *root = NULL, *list;
    int r = read_saved(path, unused, &root);

    if (r < 0) {
        return r;
    }
    root = root ? root : json_pack("{s:[]}", "models");
    list = json_object_get(root, "models");
    there = drop(list, text(mine, "name"));
    if (!adds && !there) {
        json_decref(root);
        return DMN_SAVED_E_NONE;
    }
    if (!list || (adds && json_array_append(list, mine) < 0)) {
        json_decref(root);
        return -ENOMEM;
    }
    return dmn_state_file_write(DMN_STATE_SAVED, path, NULL, root);
}

/* @entry: taken; NULL: out of memory, or a path that is not UTF-8. */
static void change(struct dmn_work *disk, const char *folder, json_t *entry,
                   struct dmn_state_kept kept)
{
    char path[DMN_STATE_PATH_MAX];

    if (!entry || !dmn_state_file_path(DMN_STATE_SAVED, folder, "", "", path)) {
        kept.fn(kept.ctx, entry ? -ENOENT : -EINVAL);
        json_decref(entry);
        return;
    }
    dmn_state_change(disk, path, write_change, entry, kept);
}

void dmn_saved_add(struct dmn_work *disk, const char *folder, const struct dmn_config_model *m,
                   struct dmn_state_kept kept)
{
    change(disk, folder,
           json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", m->name, "path", m->path, "plan", m->plan,
                     "shapes", m->shapes, "wishes", dmn_wishes_json(&m->wishes)),
           kept);
}

void dmn_saved_remove(struct dmn_work *disk, const char *folder, const char *name,
                      struct dmn_state_kept kept)
{
    change(disk, folder, json_pack("{s:s}", "name", name), kept);
}
