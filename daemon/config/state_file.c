/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/state_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "atomic_file.h"
#include "base.h"
#include "daemon/config/state_lock.h"

const struct dmn_state_row dmn_state_rows[DMN_STATE_FILE_COUNT] = {
    /* written on the loop thread while frames are served: does not wait for the disk */
    [DMN_STATE_MODEL] = {.form = "model-HASH-NAME.v2.json",
                         .version_key = "version",
                         .version = 2,
                         .bytes_max = 16 << 20,
                         .json_flags = JSON_COMPACT | JSON_REAL_PRECISION(9)},
    [DMN_STATE_CHOICE] = {.form = "choice-HASH-NAME.v1.json",
                          .version_key = "version",
                          .version = 1,
                          .bytes_max = 16 << 20,
                          .json_flags = JSON_COMPACT | JSON_REAL_PRECISION(9),
                          .synced = true},
    [DMN_STATE_RANGES] = {.form = "calibration-NAME.v1.json",
                          .version = 1,
                          .bytes_max = 16 << 20,
                          .json_flags = JSON_INDENT(1) | JSON_REAL_PRECISION(9),
                          .synced = true},
    /* written on the loop thread, too; whoever loses it judges again */
    [DMN_STATE_BORDERS] = {.form = "borders-NAME.v1.json",
                           .version_key = "version",
                           .version = 1,
                           .bytes_max = 1 << 20,
                           .json_flags = JSON_INDENT(1) | JSON_REAL_PRECISION(17)},
    [DMN_STATE_PROFILE] = {.form = "calibration.json",
                           .version_key = "format",
                           .version = 1,
                           .bytes_max = 1 << 20,
                           .json_flags = JSON_INDENT(1) | JSON_REAL_PRECISION(17),
                           .synced = true},
    [DMN_STATE_SAVED] = {.form = "models.v1.json",
                         .version_key = "version",
                         .version = 1,
                         .bytes_max = 1 << 20,
                         .json_flags = JSON_INDENT(1),
                         .synced = true},
};

bool dmn_state_file_path(enum dmn_state_file file, const char *folder, const char *identity,
                         const char *name, char ret[DMN_STATE_PATH_MAX])
{
    const char *form = dmn_state_rows[file].form;
    size_t used;
    int n = snprintf(ret, DMN_STATE_PATH_MAX, "%s/", folder ? folder : "");

    for (used = (size_t)n; *form && used < DMN_STATE_PATH_MAX; used += (size_t)n) {
        if (strncmp(form, "HASH", 4) == 0) {
            n = snprintf(ret + used, DMN_STATE_PATH_MAX - used, "%.127s", identity);
            form += 4;
        } else if (strncmp(form, "NAME", 4) == 0) {
            n = snprintf(ret + used, DMN_STATE_PATH_MAX - used, "%s", name);
            form += 4;
        } else {
            n = snprintf(ret + used, DMN_STATE_PATH_MAX - used, "%c", *form);
            form++;
        }
    }
    return folder && used < DMN_STATE_PATH_MAX;
}

int dmn_state_file_read(enum dmn_state_file file, const char *path, json_t **ret)
{
    const struct dmn_state_row *row = &dmn_state_rows[file];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO of that name must not block */
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    struct stat st = {0};
    json_t *root = NULL;

    if (!f) {
        int error = -errno;

        base_close_fd(&fd);
        return error;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)row->bytes_max) {
        root = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
    }
    fclose(f);
    if (!json_is_object(root)) {
        json_decref(root);
        return DMN_STATE_E_BAD;
    }
    if (row->version_key &&
        json_integer_value(json_object_get(root, row->version_key)) != row->version) {
        json_decref(root);
        return DMN_STATE_E_OTHER;
    }
    *ret = root;
    return 0;
}

/* Puts the version first. Return: new reference, or NULL. */
static json_t *with_version(const struct dmn_state_row *row, json_t *root)
{
    json_t *whole = json_object();
    int r = row->version_key
                ? json_object_set_new(whole, row->version_key, json_integer(row->version))
                : 0;

    if (r == 0) {
        r = json_object_update(whole, root);
    }
    json_decref(root);
    if (r != 0) {
        json_decref(whole);
        return NULL;
    }
    return whole;
}

int dmn_state_file_write(enum dmn_state_file file, const char *path, json_t *root)
{
    const struct dmn_state_row *row = &dmn_state_rows[file];
    struct atomic_file f = {.folder = AT_FDCWD, .path = path, .mode = 0600, .synced = row->synced};
    base_autofree char *text = NULL;

    if (dmn_state_taken()) {
        json_decref(root);
        return DMN_STATE_E_TAKEN;
    }
    root = root ? with_version(row, root) : NULL;
    text = root ? json_dumps(root, row->json_flags) : NULL;
    json_decref(root);
    return text ? atomic_file_write(&f, text, strlen(text)) : -ENOMEM;
}
