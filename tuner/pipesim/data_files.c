/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/files.h"

#include <ctype.h>
#include <dirent.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base.h"

/* ---- finding ---- */

/* PSIM_SOURCE and PSIM_DATA come from meson. */
const struct psim_folders psim_networks = {
    .what = "network",
    .environment = "PIPESIM_NETWORKS",
    .folders = (const char *const[]){PSIM_SOURCE "/model/networks", PSIM_DATA "/networks", NULL},
    .list = "pipesim list"};
const struct psim_folders psim_platforms = {
    .what = "platform",
    .environment = "PIPESIM_PLATFORMS",
    .folders = (const char *const[]){PSIM_SOURCE "/tuner/platforms", PSIM_DATA "/platforms", NULL},
    .list = "pipesim list"};

/* The i-th folder: the environment's first. Return: NULL after the last. */
static const char *folder_at(const struct psim_folders *f, size_t i)
{
    const char *mine = getenv(f->environment);

    if (mine && *mine) {
        return i == 0 ? mine : f->folders[i - 1];
    }
    return f->folders[i];
}

static bool ends_in(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);

    return n > m && strcmp(s + n - m, suffix) == 0;
}

int psim_find(const struct psim_folders *f, const char *name, char ret_error[PSIM_ERROR_MAX],
              char ret_path[PSIM_PATH_MAX])
{
    const char *folder;

    if (strchr(name, '/') || ends_in(name, ".json") || ends_in(name, ".onnx")) {
        if (snprintf(ret_path, PSIM_PATH_MAX, "%s", name) < (int)PSIM_PATH_MAX &&
            access(ret_path, R_OK) == 0) {
            return 0;
        }
        snprintf(ret_error, PSIM_ERROR_MAX, "cannot read %.200s", name);
        return -ENOENT;
    }
    for (size_t i = 0; *name && (folder = folder_at(f, i)); i++) {
        int n = snprintf(ret_path, PSIM_PATH_MAX, "%s/%s.json", folder, name);

        if (n < (int)PSIM_PATH_MAX && access(ret_path, R_OK) == 0) {
            return 0;
        }
    }
    snprintf(ret_error, PSIM_ERROR_MAX,
             "no %s \"%.100s\": %s names those there are, or give a file", f->what, name, f->list);
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

        if (e->d_name[0] == '.' || !ends_in(e->d_name, ".json") ||
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

char **psim_platform_names(void)
{
    return psim_names(&psim_platforms);
}

char **psim_network_names(void)
{
    return psim_names(&psim_networks);
}

char **psim_names_free(char **names)
{
    for (size_t i = 0; names && names[i]; i++) {
        free(names[i]);
    }
    free(names);
    return NULL;
}

/* ---- reading ---- */

void psim_wrong(struct psim_reader *r, const char *where, const char *format, ...)
{
    va_list args;
    int n;

    if (r->error[0]) {
        return;
    }
    n = snprintf(r->error, PSIM_ERROR_MAX, "%.200s: %s%s", r->path, where, *where ? ": " : "");
    if (n < 0 || n >= (int)PSIM_ERROR_MAX) {
        return;
    }
    va_start(args, format);
    vsnprintf(r->error + n, PSIM_ERROR_MAX - (size_t)n, format, args);
    va_end(args);
}

json_t *psim_read_file(struct psim_reader *r)
{
    json_error_t e;
    json_t *root = json_load_file(r->path, JSON_REJECT_DUPLICATES, &e);

    if (!root) {
        if (e.line < 0) {
            psim_wrong(r, "", "%s", e.text);
        } else {
            psim_wrong(r, "", "line %d: %s", e.line, e.text);
        }
    } else if (!json_is_object(root)) {
        psim_wrong(r, "", "is not an object");
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

bool psim_read_keys(struct psim_reader *r, const char *where, const json_t *object,
                    const char *const *keys)
{
    const char *key;
    json_t *value;

    if (!json_is_object(object)) {
        psim_wrong(r, where, "is not an object");
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        bool known = false;

        for (size_t i = 0; keys[i] && !known; i++) {
            known = names_key(keys[i], key);
        }
        if (!known) {
            psim_wrong(r, where, "unknown key \"%.60s\"", key);
        }
    }
    for (size_t i = 0; keys[i]; i++) {
        if (!strchr(keys[i], '?') && !json_object_get(object, keys[i])) {
            psim_wrong(r, where, "key \"%s\" is missing", keys[i]);
        }
    }
    return !r->error[0];
}

static const char *dot(const char *where)
{
    return *where ? "." : "";
}

/* Return: the number, or NAN with the error set. */
static double number_of(struct psim_reader *r, const char *where, const json_t *object,
                        const char *key)
{
    const json_t *v = json_object_get(object, key);
    char way[160];

    if (json_is_number(v)) {
        return json_number_value(v);
    }
    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    psim_wrong(r, way, v ? "is not a number" : "is missing");
    return NAN;
}

double psim_read_number(struct psim_reader *r, const char *where, const json_t *object,
                        const char *key, double least, double most)
{
    double v = number_of(r, where, object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!(v >= least && v <= most)) {
        psim_wrong(r, way, "%g is not within %g to %g", v, least, most);
        return least;
    }
    return v;
}

double psim_read_positive(struct psim_reader *r, const char *where, const json_t *object,
                          const char *key)
{
    double v = number_of(r, where, object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!(v > 0 && v <= 1e15)) {
        psim_wrong(r, way, "%g is not above 0 (and at most 1e15)", v);
        return 1;
    }
    return v;
}

const char *psim_read_text(struct psim_reader *r, const char *where, const json_t *object,
                           const char *key, size_t bytes_max)
{
    const json_t *v = json_object_get(object, key);
    char way[160];

    snprintf(way, sizeof(way), "%s%s%s", where, dot(where), key);
    if (!json_is_string(v)) {
        psim_wrong(r, way, "is not a text");
    } else if (json_string_length(v) == 0 || json_string_length(v) >= bytes_max) {
        psim_wrong(r, way, "wants 1 to %zu bytes", bytes_max - 1);
    } else {
        return json_string_value(v);
    }
    return "?";
}

const json_t *psim_read_kinds(struct psim_reader *r, const json_t *root)
{
    const json_t *kinds = json_object_get(root, "kinds");

    if (!json_is_array(kinds)) {
        psim_wrong(r, "kinds", "is not a list");
    } else if (json_array_size(kinds) < 1 || json_array_size(kinds) > PL_EP_MAX) {
        psim_wrong(r, "kinds", "has %zu entries; 1 to %u are possible", json_array_size(kinds),
                   PL_EP_MAX);
    } else {
        return kinds;
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

void psim_read_kind(struct psim_reader *r, const char *where, const json_t *object,
                    struct tun_kind *ret)
{
    const char *name = psim_read_text(r, where, object, "name", PL_EP_NAME_MAX);
    double cores = psim_read_number(r, where, object, "cores", 1, PL_CPU_MAX);
    char way[160];

    snprintf(ret->name, sizeof(ret->name), "%s", name);
    ret->cores = (uint16_t)cores;
    if (!name_is_plain(name)) {
        snprintf(way, sizeof(way), "%s.name", where);
        psim_wrong(r, way, "\"%s\" has other characters than letters, digits, '_', '-', '.'", name);
    }
    if (!json_is_integer(json_object_get(object, "cores"))) {
        snprintf(way, sizeof(way), "%s.cores", where);
        psim_wrong(r, way, "is not a whole number");
    }
}

void psim_read_distinct(struct psim_reader *r, const struct tun_kind *kinds, size_t count)
{
    size_t cores = 0;

    for (size_t k = 0; k < count; k++) {
        cores += kinds[k].cores;
        for (size_t j = 0; j < k; j++) {
            if (strcmp(kinds[j].name, kinds[k].name) == 0) {
                psim_wrong(r, "kinds", "two are called \"%s\"", kinds[k].name);
            }
        }
    }
    if (cores > PL_CPU_MAX) {
        psim_wrong(r, "kinds", "have %zu cores in all; %u are possible", cores, PL_CPU_MAX);
    }
}
