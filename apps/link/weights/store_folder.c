/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of the store: who may use it, what is too much in it. */
#include <dirent.h>
#include <sys/file.h>

#include "apps/link/weights/store_private.h"

#define BLOCK_BYTES 512u /* of st_blocks */

int store_say(char why[STORE_WHY_BYTES], int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, STORE_WHY_BYTES, format, args);
    va_end(args);
    return code;
}

/* Is this IDENTITY.onnx and @ending? */
static bool is_file(const char *name, const char *ending)
{
    size_t digits = 2 * (size_t)MDL_HASH_BYTES;

    return strspn(name, "0123456789abcdef") == digits &&
           strncmp(name + digits, STORE_ENDING, strlen(STORE_ENDING)) == 0 &&
           strcmp(name + digits + strlen(STORE_ENDING), ending) == 0;
}

static void list_name(const char *name, char ret[STORE_NAME_BYTES + sizeof(MDL_LEAVES_ENDING)])
{
    snprintf(ret, STORE_NAME_BYTES + sizeof(MDL_LEAVES_ENDING), "%.*s" MDL_LEAVES_ENDING,
             (int)STORE_NAME_BYTES - 1, name);
}

/* The file goes first: without its list it would look complete. */
void store_remove(struct store *s, const char *name)
{
    char list[STORE_NAME_BYTES + sizeof(MDL_LEAVES_ENDING)];

    list_name(name, list);
    (void)unlinkat(s->folder, name, 0);
    (void)unlinkat(s->folder, list, 0);
}

/* ---- what is in it ---- */

struct content {
    uint64_t bytes, used_bytes;    /* on the disk: of all files; of those in use */
    char oldest[STORE_NAME_BYTES]; /* of those that nobody uses; "": none */
    struct timespec used;
};

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool is_used(const struct store *s, const char *name)
{
    const struct store_file *f = s->in_use;

    while (f && strcmp(f->name, name) != 0) {
        f = f->next;
    }
    return f != NULL;
}

static void count_entry(const struct store *s, const char *name, struct content *c)
{
    char list[STORE_NAME_BYTES + sizeof(MDL_LEAVES_ENDING)];
    struct stat st;

    if (fstatat(s->folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        return;
    }
    c->bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
    if (!is_file(name, "") || is_used(s, name)) {
        c->used_bytes += (uint64_t)st.st_blocks * BLOCK_BYTES;
        return;
    }
    list_name(name, list); /* its time is that of the last use */
    if (fstatat(s->folder, list, &st, AT_SYMLINK_NOFOLLOW) < 0) {
        st.st_mtim = (struct timespec){0};
    }
    if (!*c->oldest || is_older(&st.st_mtim, &c->used)) {
        snprintf(c->oldest, sizeof(c->oldest), "%s", name);
        c->used = st.st_mtim;
    }
}

/* Calls @each for all names but "." and "..". Return: 0, -errno. */
static int walk(const struct store *s,
                void (*each)(const struct store *s, const char *name, struct content *c),
                struct content *c)
{
    int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    int r = d ? 0 : -errno;

    if (!d) {
        base_close_fd(&fd);
        return r;
    }
    while ((e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            each(s, e->d_name, c);
        }
    }
    closedir(d);
    return 0;
}

int store_room(struct store *s, uint64_t bytes, char why[STORE_WHY_BYTES])
{
    while (s->bytes_max > 0) {
        struct content c = {0};
        int r = walk(s, count_entry, &c);

        if (r < 0) {
            return store_say(why, r, "%.160s: %s", s->path, strerror(-r));
        }
        if (c.bytes + bytes <= s->bytes_max) {
            break;
        }
        if (!*c.oldest || c.used_bytes + bytes > s->bytes_max) {
            return store_say(why, STORE_E_FULL,
                             "models of other boards may take %llu MB here, and those in use "
                             "need more",
                             (unsigned long long)(s->bytes_max / 1000000));
        }
        store_remove(s, c.oldest);
    }
    return 0;
}

bool store_spare_one(struct store *s)
{
    struct content c = {0};

    if (walk(s, count_entry, &c) < 0 || !*c.oldest) {
        return false;
    }
    store_remove(s, c.oldest);
    return true;
}

/* ---- open and close ---- */

/* What a process that was killed left: drafts, a list or a file alone. */
static void tidy(const struct store *s, const char *name, struct content *unused)
{
    char other[STORE_NAME_BYTES + sizeof(MDL_LEAVES_ENDING)];
    bool drop = is_file(name, MDL_LEAVES_ENDING ".new");

    if (is_file(name, "")) {
        list_name(name, other);
        drop = faccessat(s->folder, other, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
    } else if (is_file(name, MDL_LEAVES_ENDING)) {
        snprintf(other, sizeof(other), "%.*s", (int)STORE_NAME_BYTES - 1, name);
        drop = faccessat(s->folder, other, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
    }
    if (drop) {
        (void)unlinkat(s->folder, name, 0);
    }
}

static int open_folder(const char *state_folder, struct store *s)
{
    base_autofree char *path = NULL;

    if (asprintf(&path, "%s/" STORE_FOLDER, state_folder) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
        return -errno;
    }
    s->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->folder < 0 || fchmod(s->folder, 0755) < 0 || flock(s->folder, LOCK_EX | LOCK_NB) < 0) {
        return -errno;
    }
    s->path = realpath(path, NULL);
    return s->path ? 0 : -errno;
}

int store_open(const char *state_folder, uint64_t bytes_max, struct store **ret,
               char ret_why[STORE_WHY_BYTES])
{
    struct store *s = calloc(1, sizeof(*s));
    struct content unused = {0};
    int r;

    if (!s) {
        return store_say(ret_why, -ENOMEM, "out of memory");
    }
    s->folder = -1;
    s->bytes_max = bytes_max;
    r = open_folder(state_folder, s);
    r = r < 0 ? r : walk(s, tidy, &unused);
    if (r < 0) {
        store_close(s);
        return store_say(ret_why, r, "%.160s/" STORE_FOLDER ": %s", state_folder,
                         r == -EWOULDBLOCK ? "another process uses it" : strerror(-r));
    }
    *ret = s;
    return 0;
}

struct store *store_close(struct store *s)
{
    if (s) {
        base_close_fd(&s->folder);
        free(s->path);
        free(s);
    }
    return NULL;
}
