/* SPDX-License-Identifier: Apache-2.0 */
/* Files of boards in their folder. */
#include <pwd.h>
#include <sys/file.h>

#include "base/base.h"
#include "base/json_text.h"
#include "base/whole_file.h"
#include "ipc/boards/board_json.h"

#define USER "piped-link"

int brd_open(const char *folder, bool make)
{
    const struct passwd *user;
    int fd;

    if (make && mkdir(folder, 0750) == 0) {
        user = geteuid() == 0 ? getpwnam(USER) : NULL;
        if (user && chown(folder, user->pw_uid, user->pw_gid) < 0) {
            return -errno;
        }
    } else if (make && errno != EEXIST) {
        return -errno;
    }
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    while (flock(fd, LOCK_EX) < 0) {
        if (errno != EINTR) {
            int error = -errno;

            close(fd);
            return error;
        }
    }
    return fd;
}

int brd_file_read(int folder, const char *name, bool secret, json_t **ret)
{
    const struct whole_file f = {.folder = folder,
                                 .path = name,
                                 .bytes_max = BRD_FILE_BYTES_MAX,
                                 .refused = secret ? S_IRWXG | S_IRWXO : 0,
                                 .no_link = true};
    base_autofree char *text = NULL;
    size_t bytes = 0;
    json_auto_t *root = NULL;
    int r = whole_file_read(&f, &text, &bytes);

    if (r) {
        return r == WHOLE_FILE_E_OPEN ? BRD_E_OPEN : r > 0 || r == -ELOOP ? BRD_E_FILE : r;
    }
    root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    explicit_bzero(text, bytes);
    if (!json_is_object(root) || !json_is_integer(json_object_get(root, "version"))) {
        return BRD_E_FILE;
    }
    if (json_integer_value(json_object_get(root, "version")) != BRD_VERSION) {
        return BRD_E_VERSION;
    }
    *ret = base_take(root);
    return 0;
}

int brd_file_write(int folder, const char *name, unsigned mode, json_t *root)
{
    struct atomic_file f = {
        .folder = folder, .path = name, .mode = mode, .inherited = true, .synced = true};
    char *text = NULL;
    int rc = -ENOMEM;

    if (root && json_object_set_new(root, "version", json_integer(BRD_VERSION)) == 0) {
        text = json_text(root, JSON_INDENT(1) | JSON_SORT_KEYS);
    }
    json_decref(root);
    if (text) {
        rc = atomic_file_write(&f, text, strlen(text));
        explicit_bzero(text, strlen(text));
        free(text);
    }
    return rc;
}
