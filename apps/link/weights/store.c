/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/weights/store_private.h"

static bool is_full(int code)
{
    return code == -ENOSPC || code == -EDQUOT;
}

/* Return: STORE_E_FULL or @code, with a sentence. */
static int say_error(const struct store_file *f, int code, char why[STORE_WHY_BYTES])
{
    const char *path = f->path ? f->path : f->name;

    if (is_full(code)) {
        return store_say(why, STORE_E_FULL, "%.160s: the disk is full", path);
    }
    return store_say(why, code, "%.160s: %s", path, strerror(-code));
}

/* ---- open ---- */

static bool is_identity(const struct store_file *f, const struct mdl_leaves *l)
{
    char hash[65];

    mdl_leaves_hash(l, hash);
    return strncmp(f->name, hash, strlen(hash)) == 0;
}

/* Reads what is there. Return: 0, also if that is nothing; -errno. */
static int read_file(struct store_file *f)
{
    struct mdl_leaves l = {0};
    struct stat st;
    base_autoclose int fd = -1;
    int r = mdl_leaves_file_read(f->path, &l);

    if (r < 0) {
        return r == -ENOENT || r == -EBADMSG || r == -E2BIG ? 0 : r;
    }
    fd = openat(f->store->folder, f->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    r = fd < 0 && errno != ENOENT ? -errno : 0;
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size == l.file_bytes && is_identity(f, &l)) {
        f->leaves = l;
        f->has_list = true;
        f->fd = base_take_fd(&fd);
        return 0;
    }
    mdl_leaves_deinit(&l);
    return r;
}

/* The longest unused file goes first: this is a use. */
static void touch(const struct store_file *f)
{
    base_autofree char *list = NULL;

    if (f->has_list && asprintf(&list, "%s" MDL_LEAVES_ENDING, f->name) > 0) {
        (void)utimensat(f->store->folder, list, NULL, AT_SYMLINK_NOFOLLOW);
    }
}

int store_file_open(struct store *s, const uint8_t identity[MDL_HASH_BYTES],
                    struct store_file **ret, char ret_why[STORE_WHY_BYTES])
{
    struct store_file *f = calloc(1, sizeof(*f));
    int r;

    if (!f) {
        return store_say(ret_why, -ENOMEM, "out of memory");
    }
    f->store = s;
    f->fd = -1;
    sodium_bin2hex(f->name, sizeof(f->name), identity, MDL_HASH_BYTES);
    strcat(f->name, STORE_ENDING);
    f->next = s->in_use;
    s->in_use = f;
    r = asprintf(&f->path, "%s/%s", s->path, f->name) < 0 ? -ENOMEM : 0;
    r = r < 0 ? r : read_file(f);
    if (r < 0) {
        r = say_error(f, r, ret_why);
        store_file_close(f);
        return r;
    }
    touch(f);
    *ret = f;
    return 0;
}

struct store_file *store_file_close(struct store_file *f)
{
    if (f) {
        struct store_file **at = &f->store->in_use;

        while (*at != f) {
            at = &(*at)->next;
        }
        *at = f->next;
        touch(f);
        base_close_fd(&f->fd);
        mdl_leaves_deinit(&f->leaves);
        free(f->path);
        free(f);
    }
    return NULL;
}

const char *store_file_path(const struct store_file *f)
{
    return f->path;
}

const struct mdl_leaves *store_file_leaves(const struct store_file *f)
{
    return f->has_list ? &f->leaves : NULL;
}

/* ---- write ---- */

/* The file is complete in length, and on the disk, before its list says that it is there. */
static int make_file(struct store_file *f, const struct mdl_leaves *l, int *ret_fd)
{
    base_autoclose int fd = -1;
    int r;

    /* Never truncated: piped may have mapped the file. */
    store_remove(f->store, f->name);
    fd =
        openat(f->store->folder, f->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0 || ftruncate(fd, (off_t)l->file_bytes) < 0 ||
        fsync(fd) < 0) {
        return -errno;
    }
    r = mdl_leaves_file_write(f->path, l);
    if (r == 0) {
        *ret_fd = base_take_fd(&fd);
    }
    return r;
}

int store_file_list(struct store_file *f, const void *data, size_t bytes,
                    char ret_why[STORE_WHY_BYTES])
{
    struct mdl_leaves l = {0};
    int r = f->has_list ? 0 : mdl_leaves_read(data, bytes, &l);

    if (f->has_list) {
        return 0;
    }
    if (r == -EBADMSG || r == -E2BIG || (r == 0 && !is_identity(f, &l))) {
        mdl_leaves_deinit(&l);
        return store_say(ret_why, STORE_E_BAD, "the leaf list is not that of the model");
    }
    r = r < 0 ? r : store_room(f->store, bytes, ret_why);
    if (r > 0) {
        mdl_leaves_deinit(&l);
        return r;
    }
    while (r == 0) {
        r = make_file(f, &l, &f->fd);
        if (r == 0 || !is_full(r) || !store_spare_one(f->store)) {
            break;
        }
        r = 0;
    }
    if (r < 0) {
        store_remove(f->store, f->name);
        mdl_leaves_deinit(&l);
        return say_error(f, r, ret_why);
    }
    f->leaves = l;
    f->has_list = true;
    return 0;
}

static int write_leaf(const struct store_file *f, const struct store_leaf *l)
{
    size_t at = l->leaf * MDL_HASH_LEAF_BYTES;

    for (size_t done = 0; done < l->bytes;) {
        ssize_t n =
            pwrite(f->fd, (const uint8_t *)l->data + done, l->bytes - done, (off_t)(at + done));

        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Return: 0; -errno, and no leaf is marked that was not. */
static int write_leaves(struct store_file *f, const struct store_leaf *leaf, size_t count)
{
    base_autofree bool *before = calloc(f->leaves.count, sizeof(*before));
    int r = before ? 0 : -ENOMEM;

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = leaf[i].wrong || f->leaves.present[leaf[i].leaf] ? 0 : write_leaf(f, &leaf[i]);
    }
    r = r == 0 && fdatasync(f->fd) < 0 ? -errno : r;
    if (r < 0) {
        return r;
    }
    memcpy(before, f->leaves.present, f->leaves.count * sizeof(*before));
    for (size_t i = 0; i < count; i++) {
        if (!leaf[i].wrong) {
            f->leaves.present[leaf[i].leaf] = true;
        }
    }
    r = mdl_leaves_file_write(f->path, &f->leaves);
    if (r < 0) {
        memcpy(f->leaves.present, before, f->leaves.count * sizeof(*before));
    }
    return r;
}

int store_file_put(struct store_file *f, struct store_leaf *leaf, size_t count,
                   char ret_why[STORE_WHY_BYTES])
{
    uint64_t bytes = 0;
    int r;

    for (size_t i = 0; i < count; i++) {
        leaf[i].wrong = !mdl_leaf_ok(&f->leaves, leaf[i].leaf, leaf[i].data, leaf[i].bytes);
        bytes += leaf[i].wrong || f->leaves.present[leaf[i].leaf] ? 0 : leaf[i].bytes;
    }
    if (bytes == 0) {
        return 0;
    }
    r = store_room(f->store, bytes, ret_why);
    if (r != 0) {
        return r;
    }
    do {
        r = write_leaves(f, leaf, count);
    } while (is_full(r) && store_spare_one(f->store));
    return r < 0 ? say_error(f, r, ret_why) : 0;
}

int store_file_check(struct store_file *f, size_t leaf, char ret_why[STORE_WHY_BYTES])
{
    size_t bytes = mdl_leaf_bytes(&f->leaves, leaf);
    base_autofree uint8_t *data = malloc(bytes + 1);
    int r;

    if (!data) {
        return store_say(ret_why, -ENOMEM, "out of memory");
    }
    /* A sector that cannot be read is damaged, too. */
    if (mdl_leaf_read(f->fd, &f->leaves, leaf, data) == 0 &&
        mdl_leaf_ok(&f->leaves, leaf, data, bytes)) {
        return 0;
    }
    f->leaves.present[leaf] = false;
    r = mdl_leaves_file_write(f->path, &f->leaves);
    return r < 0 ? say_error(f, r, ret_why)
                 : store_say(ret_why, STORE_E_BAD, "%.160s: leaf %zu is damaged", f->path, leaf);
}
