/* SPDX-License-Identifier: Apache-2.0 */
#include "model/common/weight_files.h"

#include <sys/mman.h>

#include "base/path_below.h"
#include "model/common/file.h"

void mdl_data_files_deinit(struct mdl_data_files *d)
{
    for (size_t i = 0; i < d->count; i++) {
        if (d->list[i].map.data) {
            munmap((void *)(uintptr_t)d->list[i].map.data, d->list[i].map.bytes);
        }
        free(d->list[i].name);
        free(d->list[i].file.path);
    }
    free(d->list);
    base_close_fd(&d->folder_fd);
    base_close_fd(&d->target_fd);
    free(d->target);
    *d = MDL_DATA_FILES_NULL;
}

/* ---- the folder ---- */

static int open_folder(const char *file)
{
    const char *slash = strrchr(file, '/');
    base_autofree char *folder = !slash          ? strdup(".")
                                 : slash == file ? strdup("/")
                                                 : strndup(file, (size_t)(slash - file));
    int fd = folder ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

    return fd >= 0 ? fd : folder ? -errno : -ENOMEM;
}

static int open_folders(struct mdl_data_files *d, char *error)
{
    struct stat st;
    int fd;

    if (d->folder_fd >= 0) {
        return 0;
    }
    fd = open_folder(d->model_path);
    if (fd < 0) {
        return mdl_fail(error, fd, "the model's folder: %s", strerror(-fd));
    }
    d->folder_fd = fd;
    if (lstat(d->model_path, &st) == 0 && S_ISLNK(st.st_mode)) {
        d->target = realpath(d->model_path, NULL);
        d->target_fd = d->target ? open_folder(d->target) : -1;
        d->target_fd = base_max(d->target_fd, -1);
    }
    return 0;
}

/* ---- one file ---- */

/* @name beside the file @path, as a path. */
static char *path_beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path + 1) : 0;
    char *ret = NULL;

    return asprintf(&ret, "%.*s%s", folder, path, name) < 0 ? NULL : ret;
}

/* Where a model is a link, its data may be beside the link or beside the file itself. *ret_beside:
 * which file it is beside. */
static int open_file(const struct mdl_data_files *d, const char *name, char *error, int *ret_fd,
                     struct mdl_data_file *ret, const char **ret_beside)
{
    size_t bytes, left = d->bytes_max - d->bytes;
    int r = mdl_file_open_beneath(d->folder_fd, name, SIZE_MAX, error, ret_fd, &bytes);

    *ret_beside = d->model_path;
    if (r == -ENOENT && d->target_fd >= 0) { /* straight from the system call */
        r = mdl_file_open_beneath(d->target_fd, name, SIZE_MAX, error, ret_fd, &bytes);
        *ret_beside = d->target;
    }
    if (r < 0) {
        return r;
    }
    if (bytes > left) {
        return mdl_fail(error, -E2BIG, "%.200s: %zu bytes; the files of a model may have %zu", name,
                        bytes, d->bytes_max);
    }
    return mdl_file_stamp(*ret_fd, name, bytes, error, ret);
}

static int map_file(struct mdl_data_files *d, const char *name, char *error,
                    struct mdl_data_file_in *ret)
{
    base_autoclose int fd = -1;
    struct mdl_data_file_in f = {0};
    const char *beside = NULL;
    int r = open_folders(d, error);

    r = r < 0 ? r : open_file(d, name, error, &fd, &f.file, &beside);
    if (r < 0) {
        return r;
    }
    f.name = strdup(name);
    f.file.path = path_beside(beside, name);
    if (!f.name || !f.file.path) {
        r = -ENOMEM;
    } else if (f.file.bytes > 0) {
        void *map = mmap(NULL, (size_t)f.file.bytes, PROT_READ, MAP_PRIVATE, fd, 0);

        r = map == MAP_FAILED ? -errno : 0;
        f.map = (struct mdl_map_range){r < 0 ? NULL : map, (size_t)f.file.bytes};
    }
    if (r < 0) {
        free(f.name);
        free(f.file.path);
        return mdl_fail(error, r, "%.200s: %s", name, strerror(-r));
    }
    if (f.map.data) {
        (void)madvise((void *)(uintptr_t)f.map.data, f.map.bytes, MADV_RANDOM);
    }
    *ret = f;
    return 0;
}

/* ---- all files ---- */

/* Return: whether it is there; *ret: where it is or belongs. */
static bool find(const struct mdl_data_files *d, const char *name, size_t *ret)
{
    size_t lo = 0, hi = d->count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(name, d->list[mid].name);

        if (order == 0) {
            *ret = mid;
            return true;
        }
        if (order < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    *ret = lo;
    return false;
}

int mdl_data_file_map(struct mdl_data_files *d, const char *name, char ret_error[MDL_ERROR_MAX],
                      struct mdl_map_range *ret)
{
    char below[PATH_BELOW_MAX];
    struct mdl_data_file_in f;
    size_t at;
    int r;

    name = path_below(name, below) == 0 ? below : name; /* else it is refused where it is opened */
    if ((d->last < d->count && strcmp(d->list[d->last].name, name) == 0 &&
         ((at = d->last), true)) ||
        find(d, name, &at)) {
        d->last = at;
        *ret = d->list[at].map;
        return 0;
    }
    if (d->count >= MDL_DATA_FILES_MAX) {
        return mdl_fail(ret_error, -E2BIG, "the weights are in more than %u files",
                        MDL_DATA_FILES_MAX);
    }
    if (!base_room(&d->list, sizeof(*d->list), d->count, &d->cap)) {
        return mdl_fail(ret_error, -ENOMEM, "out of memory");
    }
    r = map_file(d, name, ret_error, &f);
    if (r < 0) {
        return r;
    }
    memmove(&d->list[at + 1], &d->list[at], (d->count - at) * sizeof(*d->list));
    d->list[at] = f;
    d->count++;
    d->bytes += f.map.bytes;
    d->last = at;
    *ret = f.map;
    return 0;
}

static bool same_file(const struct mdl_data_file *a, const struct mdl_data_file *b)
{
    return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
           a->mtime_ns == b->mtime_ns;
}

int mdl_data_file_again(const struct mdl_data_files *d, size_t i, char ret_error[MDL_ERROR_MAX],
                        int *ret_fd)
{
    const struct mdl_data_file_in *f = &d->list[i];
    struct mdl_data_files all = *d; /* its bytes are counted already */
    struct mdl_data_file now = {0};
    base_autoclose int fd = -1;
    const char *beside;
    int r;

    all.bytes = 0;
    r = open_file(&all, f->name, ret_error, &fd, &now, &beside);
    if (r < 0) {
        return r;
    }
    if (!same_file(&f->file, &now)) {
        return mdl_fail(ret_error, -EBADMSG, "%.200s: the file changed while it was read", f->name);
    }
    *ret_fd = base_take_fd(&fd);
    return 0;
}

int mdl_data_files_move(struct mdl_data_files *d, struct mdl_model *m)
{
    struct mdl_map *map = m->private->map;
    struct mdl_map_range *more = calloc(d->count + 1, sizeof(*more));

    m->data_files = mdl_pool_alloc(m->private->pool, d->count, sizeof(*m->data_files));
    if (!more || !m->data_files || !map) {
        free(more);
        return -ENOMEM;
    }
    for (size_t i = 0; i < d->count; i++) {
        m->data_files[i] = d->list[i].file;
        m->data_files[i].path = mdl_pool_strdup(m->private->pool, d->list[i].file.path);
        if (!m->data_files[i].path) {
            free(more);
            return -ENOMEM;
        }
    }
    m->data_file_count = d->count;
    for (size_t i = 0; i < d->count; i++) {
        if (d->list[i].map.data) {
            more[map->more_count++] = d->list[i].map;
        }
        d->list[i].map.data = NULL;
    }
    map->more = more;
    return 0;
}
