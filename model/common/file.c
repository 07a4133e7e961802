/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/file.h"

#include "base/path_below.h"
#include "base/shown_text.h"
#include "base/whole_file.h"
#include "model/common/private.h"

static int check_open(int fd, const char *path, size_t bytes_max, char *error, size_t *ret_bytes)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        int code = -errno;

        return mdl_fail(error, code, "%s: %s", path, strerror(-code));
    }
    if (!S_ISREG(st.st_mode)) {
        return mdl_fail(error, S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL, "%s: not a regular file",
                        path);
    }
    if (st.st_size < 0 || (uintmax_t)st.st_size > bytes_max) {
        return mdl_fail(error, -E2BIG, "%s: %lld bytes, more than %zu are not read", path,
                        (long long)st.st_size, bytes_max);
    }
    *ret_bytes = (size_t)st.st_size;
    return 0;
}

static int finish_open(int opened, const char *path, size_t bytes_max, char *error, int *ret_fd,
                       size_t *ret_bytes)
{
    base_autoclose int fd = opened;
    size_t bytes = 0;
    int r = -errno;

    if (fd < 0) {
        return mdl_fail(error, r, "%s: %s", path, strerror(-r));
    }
    r = check_open(fd, path, bytes_max, error, &bytes);
    if (r < 0) {
        return r;
    }
    *ret_bytes = bytes;
    *ret_fd = base_take_fd(&fd);
    return 0;
}

int mdl_file_open(int dir_fd, const char *path, size_t bytes_max, char ret_error[MDL_ERROR_MAX],
                  int *ret_fd, size_t *ret_bytes)
{
    char shown[SHOWN_SHORT_MAX];
    int fd;

    do {
        fd = openat(dir_fd, path, PATH_OPEN_FLAGS);
    } while (fd < 0 && errno == EINTR);
    return finish_open(fd, shown_short(path, shown, sizeof(shown)), bytes_max, ret_error, ret_fd,
                       ret_bytes);
}

int mdl_file_open_beneath(int dir_fd, const char *path, size_t bytes_max,
                          char ret_error[MDL_ERROR_MAX], int *ret_fd, size_t *ret_bytes)
{
    char below[PATH_BELOW_MAX], shown[SHOWN_SHORT_MAX];
    int fd, r = path_below(path, below);

    path = shown_short(path, shown, sizeof(shown));
    if (r == PATH_BELOW_E_LONG) {
        return mdl_fail(ret_error, -ENAMETOOLONG, "%s: %s", path, strerror(ENAMETOOLONG));
    }
    if (r != 0) {
        return mdl_fail(ret_error, -EXDEV, "%s: must be a path below the model's folder", path);
    }
    fd = path_open_below(dir_fd, below);
    if (fd < 0 && errno == EXDEV) {
        return mdl_fail(ret_error, -EXDEV,
                        "%s: is or leads through an absolute link, or leads out of the model's "
                        "folder",
                        path);
    }
    return finish_open(fd, path, bytes_max, ret_error, ret_fd, ret_bytes);
}

int mdl_file_text(int fd, const char *path, size_t bytes, char ret_error[MDL_ERROR_MAX], char **ret)
{
    base_autofree char *text = bytes < SIZE_MAX ? malloc(bytes + 1) : NULL;
    ssize_t n = text ? whole_file_part(fd, 0, text, bytes) : -ENOMEM;

    if (n < 0) {
        return mdl_fail(ret_error, (int)n, "%.200s: %s", path,
                        text ? strerror((int)-n) : "out of memory");
    }
    if ((size_t)n < bytes) {
        return mdl_fail(ret_error, -EBADMSG, "%.200s: became shorter while it was read", path);
    }
    text[bytes] = '\0';
    *ret = base_take(text);
    return 0;
}

int mdl_file_stamp(int fd, const char *path, size_t bytes, char ret_error[MDL_ERROR_MAX],
                   struct mdl_data_file *ret)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        int code = -errno;

        return mdl_fail(ret_error, code, "%.200s: %s", path, strerror(-code));
    }
    *ret = (struct mdl_data_file){.device = st.st_dev,
                                  .inode = st.st_ino,
                                  .bytes = bytes,
                                  .mtime_ns = (uint64_t)st.st_mtim.tv_sec * BASE_NS_PER_S +
                                              (uint64_t)st.st_mtim.tv_nsec};
    return 0;
}

int mdl_file_text_beneath(int dir_fd, const char *path, size_t bytes_max,
                          char ret_error[MDL_ERROR_MAX], struct mdl_data_file *ret_file, char **ret)
{
    base_autoclose int fd = -1;
    size_t bytes;
    int r = mdl_file_open_beneath(dir_fd, path, bytes_max, ret_error, &fd, &bytes);

    r = r < 0 ? r : mdl_file_stamp(fd, path, bytes, ret_error, ret_file);
    return r < 0 ? r : mdl_file_text(fd, path, bytes, ret_error, ret);
}
