/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies are, when they go, and how they are made. Nothing that a client sends is mapped: a
 * file that others may still change or truncate would kill the daemon. */
#include "daemon/models/model_copies.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/statvfs.h>

#include "base/path_below.h"
#include "daemon/config/config.h"
#include "daemon/models/arrival.h"

#define LOADED "loaded"
#define SAVED "saved"
#define DEPTH_DESCRIPTORS 16
#define BLOCK_BYTES ((size_t)64 << 10)
#define STRUCTURE_BYTES_MAX                                                                        \
    ((uint64_t)256 << 20)                /* of a file beyond its weights, as in mdl_load() */
#define SPARE_BYTES ((uint64_t)16 << 20) /* stay free for what the daemon keeps */

/* A folder to remove on the disk's thread. */
struct removal {
    struct dmn_job job;
    char *folder; /* owned */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)remove(path);
    return 0;
}

/* Removes a folder with all that is in it; blocks. */
static void remove_folder(const char *folder)
{
    (void)nftw(folder, remove_one, DEPTH_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

/* What stays is tried again at the next start. */
static void removal_run(struct dmn_job *job)
{
    remove_folder(base_container_of(job, struct removal, job)->folder);
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

/* Return: the folder @place of the state directory, from the root, owned by the caller; NULL: there
 * is no state directory, or no memory. */
static char *folder_at(const char *state_dir, const char *place)
{
    base_autofree char *root = state_dir ? absolute_path(state_dir) : NULL;
    char *folder = NULL;

    return root && asprintf(&folder, "%s/%s", root, place) >= 0 ? folder : NULL;
}

/* Return: the folder of the copy that @path is in; NULL: it is in none of @place. */
static char *folder_of(const struct dmn_models *models, const char *place, const char *path)
{
    base_autofree char *all = folder_at(models->state_dir, place);
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
    const struct dmn_arrival *a;

    for (const struct dmn_model *m = dmn_model_first(models); m; m = dmn_model_next(m)) {
        if (strcmp(m->path, path) == 0) {
            return true;
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
    char *folder = folder_of(models, LOADED, path);

    if (folder && is_used(models, path)) {
        free(folder);
        return;
    }
    remove_later(models, folder);
}

void dmn_copy_forget(const struct dmn_models *models, const char *path)
{
    remove_later(models, folder_of(models, SAVED, path));
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
            remove_folder(path);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

void dmn_copies_clean(const struct dmn_models *models, const struct dmn_config *config)
{
    base_autofree char *loaded = folder_at(models->state_dir, LOADED);
    base_autofree char *saved = folder_at(models->state_dir, SAVED);

    if (dmn_state_taken()) {
        return;
    }
    clean(loaded, NULL);
    if (has_saved(config)) { /* else the list may be damaged: what it named stays */
        clean(saved, config);
    }
}

/* ---- what was sent ---- */

void dmn_sent_files_deinit(struct dmn_sent_files *s)
{
    for (size_t i = 0; i < s->count; i++) {
        base_close_fd(&s->fd[i]);
        free(s->name[i]);
    }
    s->count = 0;
}

/* ---- by path? ---- */

/* Return: the daemon may read every file at its path, and it is the one that was sent. */
static bool readable_by_path(const struct dmn_sent_files *s, const char *model_path)
{
    const char *slash = strrchr(model_path, '/');

    for (size_t i = 0; i < s->count; i++) {
        base_autofree char *path = NULL;
        struct stat sent, there;

        if (asprintf(&path, "%.*s%s", (int)(slash + 1 - model_path), model_path, s->name[i]) < 0 ||
            fstat(s->fd[i], &sent) < 0 || stat(path, &there) < 0 || sent.st_dev != there.st_dev ||
            sent.st_ino != there.st_ino || access(path, R_OK) < 0) {
            return false;
        }
    }
    return true;
}

/* ---- what may be copied ---- */

static int fail(struct dmn_load *l, int error, const char *name, const char *why)
{
    snprintf(l->error, sizeof(l->error), "%.200s: %s", name, why);
    return error;
}

static bool is_file(const struct dmn_load *l, const struct stat *st, uint64_t *bytes)
{
    return S_ISREG(st->st_mode) && st->st_size >= 0 &&
           base_add(*bytes, (uint64_t)st->st_size, bytes) &&
           *bytes <= l->weight_bytes_max + STRUCTURE_BYTES_MAX;
}

/* Judges all files before one byte is copied. @ret_bytes: that they take. */
static int judge(const struct dmn_sent_files *s, struct dmn_load *l, uint64_t *ret_bytes)
{
    uint64_t bytes = 0, blocks = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct stat st;
        int mode = fcntl(s->fd[i], F_GETFL);

        if (mode < 0 || fstat(s->fd[i], &st) < 0) {
            return fail(l, -errno, s->name[i], strerror(errno));
        }
        if (!S_ISREG(st.st_mode)) {
            return fail(l, -EINVAL, s->name[i], "not a regular file");
        }
        if ((mode & O_PATH) || (mode & O_ACCMODE) == O_WRONLY) {
            return fail(l, -EBADF, s->name[i], "its descriptor was not opened for reading");
        }
        if (!is_file(l, &st, &bytes)) {
            return fail(l, -E2BIG, s->name[i],
                        "with this file the model is larger than limits.model_weight_mib allows");
        }
        blocks += base_min((uint64_t)st.st_blocks * 512, (uint64_t)st.st_size);
    }
    *ret_bytes = blocks;
    return 0;
}

static int check_room(struct dmn_load *l, const char *folder, uint64_t bytes)
{
    struct statvfs fs;
    uint64_t there;

    if (statvfs(folder, &fs) < 0) {
        return fail(l, -errno, folder, strerror(errno));
    }
    there = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (there >= SPARE_BYTES && bytes <= there - SPARE_BYTES) {
        return 0;
    }
    snprintf(
        l->error, sizeof(l->error),
        "the daemon may not read the model's files where they are, and %.200s has no room for a "
        "copy: %llu MiB needed, %llu MiB free; put the model where the daemon may read it",
        folder, (unsigned long long)((bytes + SPARE_BYTES) >> 20),
        (unsigned long long)(there >> 20));
    return -ENOSPC;
}

/* ---- copying ---- */

static int write_block(int fd, const char *data, size_t bytes, off_t at)
{
    bool zeros = data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;

    while (bytes > 0 && !zeros) { /* a hole stays a hole */
        ssize_t n = pwrite(fd, data, bytes, at);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        data += n;
        bytes -= (size_t)n;
        at += n;
    }
    return 0;
}

enum { ENDS_EARLY = 1 };

/* Copies @bytes. Return: 0; ENDS_EARLY: the file has fewer; -errno. */
static int copy_bytes(int from, int to, off_t bytes, char *block)
{
    off_t at = 0;

    while (at < bytes) {
        ssize_t n = pread(from, block, (size_t)base_min((off_t)BLOCK_BYTES, bytes - at), at);
        int r;

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : ENDS_EARLY;
        }
        r = write_block(to, block, (size_t)n, at);
        if (r < 0) {
            return r;
        }
        at += n;
    }
    return ftruncate(to, bytes) < 0 ? -errno : 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
           a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Makes the folders above @path, below the @known bytes of it that are there. */
static int make_folders(char *path, size_t known)
{
    for (char *slash = strchr(path + known, '/'); slash; slash = strchr(slash + 1, '/')) {
        int r;

        *slash = '\0';
        r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *slash = '/';
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int copy_file(const struct dmn_sent_files *s, size_t i, struct dmn_load *l,
                     const char *folder, char *block)
{
    base_autofree char *path = NULL;
    base_autoclose int to = -1;
    struct stat before, after;
    int r;

    if (asprintf(&path, "%s/%s", folder, s->name[i]) < 0 || fstat(s->fd[i], &before) < 0) {
        return fail(l, -ENOMEM, s->name[i], "out of memory");
    }
    r = make_folders(path, strlen(folder) + 1);
    to = r < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    r = r < 0 ? r : to < 0 ? -errno : copy_bytes(s->fd[i], to, before.st_size, block);
    if (r < 0) {
        return fail(l, r, s->name[i], strerror(-r));
    }
    if (r == ENDS_EARLY || fstat(s->fd[i], &after) < 0 || !same(&before, &after)) {
        return fail(l, -EBADMSG, s->name[i], "the file changed while it was copied");
    }
    if (s->save && fsync(to) < 0) {
        return fail(l, -errno, s->name[i], strerror(errno));
    }
    return 0;
}

/* So that names survive a loss of power before the list of saved models names them. */
static int sync_folder(const char *path)
{
    base_autoclose int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || syncfs(fd) < 0 ? -errno : 0;
}

static int copy_all(const struct dmn_sent_files *s, struct dmn_load *l, const char *folder)
{
    base_autofree char *block = malloc(BLOCK_BYTES);
    char *path;
    int r = block ? 0 : fail(l, -ENOMEM, s->name[0], "out of memory");

    for (size_t i = 0; i < s->count && r == 0; i++) {
        r = copy_file(s, i, l, folder, block);
    }
    if (r == 0 && s->save && (r = sync_folder(folder)) < 0) {
        fail(l, r, folder, strerror(-r));
    }
    if (r == 0 && asprintf(&path, "%s/%s", folder, s->name[0]) < 0) {
        r = fail(l, -ENOMEM, s->name[0], "out of memory");
    }
    if (r == 0) {
        free(l->path);
        l->path = path;
    }
    return r;
}

static int make_copy(struct dmn_sent_files *s, struct dmn_load *l, const char *state_dir)
{
    base_autofree char *place = folder_at(state_dir, s->save ? SAVED : LOADED);
    base_autofree char *folder = NULL;
    uint64_t bytes = 0;
    int r = judge(s, l, &bytes);

    if (r < 0) {
        return r;
    }
    if (!place || asprintf(&folder, "%s/%s.XXXXXX", place, l->name) < 0) {
        folder = NULL;
        return fail(l, -ENOMEM, s->name[0], "out of memory");
    }
    r = check_room(l, state_dir, bytes);
    if (r < 0) {
        return r;
    }
    if ((mkdir(place, 0700) < 0 && errno != EEXIST) || !mkdtemp(folder)) {
        return fail(l, -errno, folder, strerror(errno));
    }
    r = copy_all(s, l, folder);
    if (r < 0) {
        remove_folder(folder);
    }
    return r;
}

int dmn_sent_files_place(struct dmn_sent_files *s, struct dmn_load *l, const char *state_dir)
{
    int r = 0;

    if (s->count == 0 || readable_by_path(s, l->path)) {
        dmn_sent_files_deinit(s);
        return 0;
    }
    if (!state_dir || dmn_state_taken()) {
        snprintf(l->error, sizeof(l->error),
                 "the daemon may not read %.300s, and cannot keep a copy: %s", l->path,
                 dmn_state_why(state_dir ? -EBUSY : -ENOENT));
        r = -EACCES;
    } else {
        r = make_copy(s, l, state_dir);
    }
    s->copied = r == 0;
    dmn_sent_files_deinit(s);
    return r;
}
