/* SPDX-License-Identifier: Apache-2.0 */
/* Where descriptions are, and recorded tables. */
#include "tuner/pipesim/described.h"

#include <dirent.h>

#include "base/base.h"
#include "tuner/json/costs_json.h"
#include "tuner/learn.h"

/* ---- finding ---- */

/* PSIM_SOURCE and PSIM_DATA come from meson. */
const struct psim_folders psim_networks = {
    .what = "network",
    .environment = "PIPESIM_NETWORKS",
    .folders = (const char *const[]){PSIM_SOURCE "/model/networks", PSIM_DATA "/networks", NULL}};
const struct psim_folders psim_platforms = {
    .what = "platform",
    .environment = "PIPESIM_PLATFORMS",
    .folders = (const char *const[]){PSIM_SOURCE "/tuner/platforms", PSIM_DATA "/platforms", NULL}};

/* The i-th folder: the environment's first. Return: NULL after the last. */
static const char *folder_at(const struct psim_folders *f, size_t i)
{
    const char *mine = getenv(f->environment);

    if (mine && *mine) {
        return i == 0 ? mine : f->folders[i - 1];
    }
    return f->folders[i];
}

int psim_find(const struct psim_folders *f, const char *name, char ret_error[PSIM_ERROR_MAX],
              char ret_path[PSIM_PATH_MAX])
{
    const char *folder;

    if (strchr(name, '/') || base_ends_with(name, ".json") || base_ends_with(name, ".onnx")) {
        errno = ENAMETOOLONG;
        if (snprintf(ret_path, PSIM_PATH_MAX, "%s", name) < (int)PSIM_PATH_MAX &&
            access(ret_path, R_OK) == 0) {
            return 0;
        }
        snprintf(ret_error, PSIM_ERROR_MAX, "cannot read %.200s: %s", name, strerror(errno));
        return -ENOENT;
    }
    for (size_t i = 0; *name && (folder = folder_at(f, i)); i++) {
        int n = snprintf(ret_path, PSIM_PATH_MAX, "%s/%s.json", folder, name);

        if (n < (int)PSIM_PATH_MAX && access(ret_path, R_OK) == 0) {
            return 0;
        }
    }
    snprintf(ret_error, PSIM_ERROR_MAX,
             "no %s '%.100s'; pipesim list shows them all, or give a file", f->what, name);
    return -ENOENT;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool has_name(char **names, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], name, length) == 0 && names[i][length] == '\0') {
            return true;
        }
    }
    return false;
}

/* Return: false when out of memory. */
static bool add_names(const char *folder, char ***names, size_t *count)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    bool ok = true;

    while (ok && dir && (e = readdir(dir))) {
        size_t length = strlen(e->d_name);
        char **grown;

        if (e->d_name[0] == '.' || !base_ends_with(e->d_name, ".json") ||
            has_name(*names, *count, e->d_name, length - 5)) {
            continue;
        }
        grown = realloc(*names, (*count + 2) * sizeof(*grown));
        *names = grown ? grown : *names;
        ok = grown && (grown[*count] = strndup(e->d_name, length - 5));
        *count += ok;
        if (grown) {
            grown[*count] = NULL;
        }
    }
    if (dir) {
        closedir(dir);
    }
    return ok;
}

char **psim_names(const struct psim_folders *f)
{
    char **names = calloc(1, sizeof(*names));
    size_t count = 0;
    const char *folder;

    for (size_t i = 0; names && (folder = folder_at(f, i)); i++) {
        if (!add_names(folder, &names, &count)) {
            return psim_names_free(names);
        }
    }
    if (names) {
        qsort(names, count, sizeof(*names), by_name);
    }
    return names;
}

char **psim_names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++) {
        free(names[i]);
    }
    free(names);
    return NULL;
}

/* ---- recorded tables ---- */

int psim_problem_load(const char *path, char ret_error[PSIM_ERROR_MAX], struct tun_problem *ret)
{
    struct tun_reader r = {.path = path, .error = ret_error};
    struct tun_problem p = TUN_PROBLEM_NULL;
    char why[TUN_ERROR_MAX];
    json_t *root;

    ret_error[0] = '\0';
    root = tun_read_file(&r);
    if (root) {
        tun_problem_read(&r, root, &p);
        json_decref(root);
    }
    if (!ret_error[0]) {
        tun_fill(&p);
        if (tun_problem_check(&p, why) < 0) {
            tun_wrong(&r, "", "%s", why);
        }
    }
    if (ret_error[0]) {
        tun_problem_deinit(&p);
        return -EBADMSG;
    }
    *ret = p;
    return 0;
}
