/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies are, and when they go. */
#include "daemon/models/model_copies.h"

#include <dirent.h>
#include <ftw.h>

#include "base/absolute_path.h"
#include "base/base.h"
#include "daemon/config/config.h"
#include "daemon/config/state_file.h"
#include "daemon/models/arrival.h"
#include "daemon/models/model_copies_private.h"
#include "daemon/models/models.h"

#define DEPTH_DESCRIPTORS 16

/* A folder to remove on the disk's thread. */
struct removal {
    struct dmn_job job;
    char *folder; /* owned */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    (void)remove(path);
    return 0;
}

void dmn_copy_remove(const char *folder)
{
    (void)nftw(folder, remove_one, DEPTH_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

/* What stays is tried again at the next start. */
static void removal_run(struct dmn_job *job)
{
    dmn_copy_remove(base_container_of(job, struct removal, job)->folder);
}

static void removal_done(struct dmn_job *job)
{
    struct removal *r = base_container_of(job, struct removal, job);

    free(r->folder);
    free(r);
}

/* Takes @folder. */
static void remove_later(const struct dmn_models *models, char *folder)
{
    struct removal *r = folder && !dmn_state_taken() ? calloc(1, sizeof(*r)) : NULL;

    if (!r) {
        free(folder);
        return;
    }
    r->folder = folder;
    r->job = (struct dmn_job){.run = removal_run, .done = removal_done};
    dmn_work_do(models->disk, &r->job);
}

char *dmn_copies_folder(const char *state_dir, const char *place)
{
    base_autofree char *root = state_dir ? absolute_path(state_dir) : NULL;
    char *folder = NULL;

    return root && asprintf(&folder, "%s/%s", root, place) >= 0 ? folder : NULL;
}

/* Return: the folder of the copy that @path is in; NULL: it is in none of @place. */
static char *folder_of(const struct dmn_models *models, const char *place, const char *path)
{
    base_autofree char *all = dmn_copies_folder(models->state_dir, place);
    size_t n = all ? strlen(all) : 0;
    const char *end;

    if (!all || strncmp(path, all, n) != 0 || path[n] != '/') {
        return NULL;
    }
    end = strchr(path + n + 1, '/');
    return end ? strndup(path, (size_t)(end - path)) : NULL;
}

static bool is_used(const struct dmn_models *models, const char *path)
{
    const struct dmn_model *lists[] = {models->models, models->leaving};
    const struct dmn_arrival *a;

    for (size_t i = 0; i < base_array_count(lists); i++) {
        for (const struct dmn_model *m = lists[i]; m; m = m->next) {
            if (strcmp(m->path, path) == 0) {
                return true;
            }
        }
    }
    LIST_FOREACH(a, &models->arrivals, linked) {
        for (size_t i = 0; i < a->count; i++) {
            if (strcmp(a->loads[i]->path, path) == 0) {
                return true;
            }
        }
    }
    return false;
}

void dmn_copy_leave(const struct dmn_models *models, const char *path)
{
    char *folder = folder_of(models, DMN_COPIES_LOADED, path);

    if (folder && is_used(models, path)) {
        free(folder);
        return;
    }
    remove_later(models, folder);
}

void dmn_copy_forget(const struct dmn_models *models, const char *path)
{
    remove_later(models, folder_of(models, DMN_COPIES_SAVED, path));
}

/* Return: a model of the configuration, to which the saved ones belong, is in @folder. */
static bool is_configured(const struct dmn_config *config, const char *folder)
{
    size_t n = strlen(folder);

    for (size_t i = 0; i < config->model_count; i++) {
        if (strncmp(config->models[i].path, folder, n) == 0 && config->models[i].path[n] == '/') {
            return true;
        }
    }
    return false;
}

static bool has_saved(const struct dmn_config *config)
{
    for (size_t i = 0; i < config->model_count; i++) {
        if (config->models[i].saved) {
            return true;
        }
    }
    return false;
}

/* Removes the folders in @all but those of @config (NULL: of nothing). */
static void clean(const char *all, const struct dmn_config *config)
{
    DIR *folder = all ? opendir(all) : NULL;
    struct dirent *e;

    while (folder && (e = readdir(folder)) != NULL) {
        base_autofree char *path = NULL;

        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            asprintf(&path, "%s/%s", all, e->d_name) >= 0 &&
            (!config || !is_configured(config, path))) {
            dmn_copy_remove(path);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

void dmn_copies_clean(const struct dmn_models *models, const struct dmn_config *config)
{
    base_autofree char *loaded = dmn_copies_folder(models->state_dir, DMN_COPIES_LOADED);
    base_autofree char *saved = dmn_copies_folder(models->state_dir, DMN_COPIES_SAVED);

    if (dmn_state_taken()) {
        return;
    }
    clean(loaded, NULL);
    if (has_saved(config)) { /* else the list may be damaged: what it named stays */
        clean(saved, config);
    }
}
