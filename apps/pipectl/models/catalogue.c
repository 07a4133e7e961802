/* SPDX-License-Identifier: Apache-2.0 */
/* Models that can be fetched, from the catalogue's file and folder. */
#include "apps/pipectl/models/models.h"

#include <dirent.h>

#include "apps/pipectl/common/pipectl.h"
#include "base/near_word.h"
#include "base/whole_file.h"

#define NAME_BYTES_MAX 64u
#define MODEL_BYTES_MAX (4LL << 30) /* of a model; labels may have LABELS_BYTES_MAX */
#define FAULT_MAX 256u
#define FILE_BYTES_MAX ((size_t)64 << 20) /* of a catalogue */
#define LABELS_FIELDS 3u                  /* of those of a row */
#define LABELS_BYTES_MAX (4LL << 20)

/* Names become names of files. */
static bool name_fits(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && n <= NAME_BYTES_MAX && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

/* Return: what is wrong with a file's description; NULL: nothing. */
static const char *source_fault(const json_t *at, json_int_t most)
{
    struct ctl_source s = ctl_source(at);
    json_int_t bytes = json_integer_value(json_object_get(at, "bytes"));

    if (strncmp(s.url, "https://", 8) != 0 && strncmp(s.url, "http://", 7) != 0 &&
        strncmp(s.url, "file://", 7) != 0) {
        return "url must begin with https://, http:// or file://";
    }
    if (strspn(s.sha256, "0123456789abcdef") != 64 || strlen(s.sha256) != 64) {
        return "sha256 must be 64 hex digits in lower case, as sha256sum prints them";
    }
    return bytes < 1 || bytes > most ? "bytes must be from 1 to 4 GiB (labels: 4 MiB)" : NULL;
}

struct field {
    const char *key, *must; /* must: be */
    json_type type;
    bool needed;
};

/* Return: what is wrong with the keys of an object; NULL: nothing. @ret: room for it. */
static const char *field_fault(json_t *of, const struct field *fields, size_t count,
                               char ret[FAULT_MAX])
{
    const char *key;
    json_t *value;
    size_t i;

    if (!json_is_object(of)) {
        return "must be an object";
    }
    json_object_foreach(of, key, value)
    {
        struct near_word near = {.given = key};
        char hint[NEAR_WORD_HINT_BYTES];

        for (i = 0; i < count && strcmp(fields[i].key, key) != 0; i++) {
            near_word_try(&near, fields[i].key);
        }
        if (i == count) {
            snprintf(ret, FAULT_MAX, "unknown key %.60s%s", key, near_word_hint(&near, hint));
            return ret;
        }
        if (json_typeof(value) != fields[i].type) {
            snprintf(ret, FAULT_MAX, "%s must be %s", key, fields[i].must);
            return ret;
        }
    }
    for (i = 0; i < count; i++) {
        if (fields[i].needed && !json_object_get(of, fields[i].key)) {
            snprintf(ret, FAULT_MAX, "%s is missing", fields[i].key);
            return ret;
        }
    }
    return NULL;
}

/* Return: what is wrong with a row; NULL: nothing. @ret: room for it. */
static const char *row_fault(json_t *row, char ret[FAULT_MAX])
{
    static const struct field fields[] = {
        {"url", "a string", JSON_STRING, true},
        {"bytes", "a whole number", JSON_INTEGER, true},
        {"sha256", "a string", JSON_STRING, true}, /* so far also those of labels */
        {"name", "a string", JSON_STRING, true},
        {"licence", "a string", JSON_STRING, true},
        {"about", "a string", JSON_STRING, false},
        {"sidecar", "an object, as in the model's sidecar file", JSON_OBJECT, false},
        {"labels", "an object", JSON_OBJECT, false},
    };
    const json_t *sidecar = json_object_get(row, "sidecar");
    json_t *labels = json_object_get(row, "labels");
    const char *name = field_fault(row, fields, base_array_count(fields), ret);

    name = name || !labels ? name : field_fault(labels, fields, LABELS_FIELDS, ret);
    if (name) {
        return name;
    }
    name = json_string_value(json_object_get(row, "name"));
    if (!name_fits(name)) {
        return "the name must be 1 to 64 letters, digits, '.', '_' and '-', a letter or digit "
               "first";
    }
    if (labels && !sidecar) {
        return "labels need a sidecar, which will name them";
    }
    if (labels && (json_object_get(sidecar, "labels") || json_object_get(sidecar, "labels_file"))) {
        return "labels are given twice: in the sidecar, and as a file";
    }
    name = source_fault(row, MODEL_BYTES_MAX);
    return name || !labels ? name : source_fault(labels, LABELS_BYTES_MAX);
}

static size_t place_of(const json_t *rows, const char *name)
{
    size_t i = 0;

    while (i < json_array_size(rows) &&
           strcmp(json_string_value(json_object_get(json_array_get(rows, i), "name")), name) != 0) {
        i++;
    }
    return i;
}

/* Return: new: of a regular file; NULL: the reason was printed. */
static json_t *load_regular(const char *path)
{
    const struct whole_file f = {.folder = AT_FDCWD, .path = path, .bytes_max = FILE_BYTES_MAX};
    base_autofree char *text = NULL;
    size_t bytes = 0;
    int r = whole_file_read(&f, &text, &bytes);
    json_error_t e;
    json_t *file = r ? NULL : json_text_read(text, bytes, JSON_REJECT_DUPLICATES, &e);

    if (r) {
        ctl_say("%s: %s", path, whole_file_why(r));
    } else if (!file) {
        ctl_say("%s:%d: %s", path, e.line, e.text);
    }
    return file;
}

/* Return: true; false: the file is wrong, as was printed. */
static bool add_file(json_t *rows, const char *path)
{
    char words[FAULT_MAX];
    json_error_t e;
    json_auto_t *file = load_regular(path);
    json_t *list;
    size_t at;

    if (!file) {
        return false;
    }
    if (json_unpack_ex(file, &e, JSON_STRICT, "{s:o}", "models", &list) < 0 ||
        !json_is_array(list)) {
        ctl_say("%s: expected {\"models\": [...]} and nothing else", path);
        return false;
    }
    json_text_each(list, i, row) {
        const char *fault = row_fault(row, words);

        if (fault) {
            ctl_say("%s: row %zu of models: %s", path, i + 1, fault);
            return false;
        }
        json_object_set_new(row, "from", json_text_path(path));
        at = place_of(rows, json_string_value(json_object_get(row, "name")));
        if (at < json_array_size(rows)) {
            json_array_set(rows, at, row);
        } else {
            json_array_append(rows, row);
        }
    }
    return true;
}

static int ends_as_json(const struct dirent *e)
{
    return e->d_name[0] != '.' && base_ends_with(e->d_name, ".json");
}

static bool add_folder(json_t *rows, const char *folder)
{
    struct dirent **names = NULL;
    int n = scandir(folder, &names, ends_as_json, alphasort);
    bool right = true;

    if (n < 0 && errno != ENOENT) {
        ctl_say("%s: %s", folder, strerror(errno));
        return false;
    }
    for (int i = 0; i < n; i++) {
        char path[512];

        snprintf(path, sizeof(path), "%s%s%s", folder, ctl_slash(folder), names[i]->d_name);
        right = right && add_file(rows, path);
        free(names[i]);
    }
    free(names);
    return right;
}

static bool add(json_t *rows, const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? add_folder(rows, path)
                                                       : add_file(rows, path);
}

json_t *ctl_catalogue(const char *more)
{
    const char *own = base_is_missing(CTL_CATALOGUE) ? CTL_CATALOGUE_SOURCE : CTL_CATALOGUE;
    json_t *rows = json_array();

    if (!add_file(rows, own) || !add_folder(rows, CTL_CATALOGUE_FOLDER) ||
        (more && !add(rows, more))) {
        json_decref(rows);
        return NULL;
    }
    return rows;
}

const json_t *ctl_catalogue_find(const json_t *rows, const char *name)
{
    struct near_word near = {.given = name};
    char hint[NEAR_WORD_HINT_BYTES];
    size_t at = place_of(rows, name);

    if (at < json_array_size(rows)) {
        return json_array_get(rows, at);
    }
    json_text_each(rows, i, row) {
        near_word_try(&near, json_string_value(json_object_get(row, "name")));
    }
    near_word_hint(&near, hint);
    ctl_say("the catalogue has no model %s%s", name,
            *hint ? hint : "; pipectl models fetch lists it");
    return NULL;
}

struct ctl_source ctl_source(const json_t *at)
{
    return (struct ctl_source){
        .url = json_string_value(json_object_get(at, "url")),
        .sha256 = json_string_value(json_object_get(at, "sha256")),
        .bytes = (uint64_t)json_integer_value(json_object_get(at, "bytes")),
    };
}
