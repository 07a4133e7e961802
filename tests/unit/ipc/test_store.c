/* SPDX-License-Identifier: Apache-2.0 */
/* The store of other boards' models: whatever happens, nothing false is marked as present. System
 * calls are wrapped, so that each can fail. */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "apps/link/weights/store.h"
#include "tests/unit/ipc/leaf_file.h"

#define LEAVES 5u
#define BYTES (4 * LEAF + 12345)

static char folder[] = "/tmp/piped-store-XXXXXX";
static char models[64], why[STORE_WHY_BYTES];
static struct leaf_file file, other;

/* ---- calls that fail ---- */

static int calls, failing = -1, failure; /* the call number @failing returns -@failure */

static bool fails(void)
{
    if (calls++ == failing) {
        errno = failure;
        return true;
    }
    return false;
}

ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    if (fails()) {
        __real_pwrite(fd, data, bytes / 2, at); /* as a full disk does it */
        errno = failure;
        return -1;
    }
    return __real_pwrite(fd, data, bytes, at);
}
#define WRAP(name, parameters, arguments)                                                          \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return fails() ? -1 : __real_##name arguments;                                             \
    }
WRAP(fdatasync, (int fd), (fd))
WRAP(fsync, (int fd), (fd))
WRAP(ftruncate, (int fd, off_t bytes), (fd, bytes))
WRAP(renameat, (int from, const char *a, int to, const char *b), (from, a, to, b))

/* ---- helpers ---- */

static struct store *begin(uint64_t bytes_max)
{
    struct store *s = NULL;

    calls = 0;
    failing = -1;
    if (store_open(folder, bytes_max, &s, why) != 0) {
        fprintf(stderr, "%s\n", why);
        abort();
    }
    return s;
}

static struct store_leaf leaf_of(const struct leaf_file *f, size_t i)
{
    return (struct store_leaf){
        .leaf = i, .data = f->data + i * LEAF, .bytes = mdl_leaf_bytes(&f->leaves, i)};
}

static int put(struct store_file *f, const struct leaf_file *of, size_t i)
{
    struct store_leaf l = leaf_of(of, i);
    int r = store_file_put(f, &l, 1, why);

    return r == 0 && l.wrong ? -1000 : r;
}

/* A file with a list and the leaves 0 to @count - 1. */
static void fill(struct store *s, const struct leaf_file *of, size_t count)
{
    struct store_file *f = NULL;

    if (store_file_open(s, of->identity, &f, why) != 0 ||
        store_file_list(f, of->list, of->list_bytes, why) != 0) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        if (put(f, of, i) != 0) {
            abort();
        }
    }
    store_file_close(f);
}

/* What the daemon would do. Return: the leaves that are marked, all of which are right; -1. */
static int marked(const struct leaf_file *of)
{
    struct mdl_leaves l;
    char path[400];
    size_t bad = 0;
    int count = 0, fd, r;

    snprintf(path, sizeof(path), "%s/%s.onnx", models, of->hex);
    r = mdl_leaves_file_read(path, &l);
    if (r == -ENOENT) {
        return 0;
    }
    fd = r == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || mdl_leaves_check_file(fd, &l, 1, &bad) != 0) {
        count = -1;
    }
    for (size_t i = 0; count >= 0 && i < l.count; i++) {
        count += l.present[i];
    }
    if (r == 0) {
        mdl_leaves_deinit(&l);
    }
    base_close_fd(&fd);
    return count;
}

static bool exists(const char *name)
{
    char path[600];

    snprintf(path, sizeof(path), "%s/%s", models, name);
    return access(path, F_OK) == 0;
}

static void empty(void)
{
    leaf_remove_all(models);
}

/* ---- cases ---- */

TEST(leaves_come_one_by_one)
{
    struct store *s = begin(0), *second = NULL;
    struct store_file *f = NULL;
    struct store_leaf two[2] = {leaf_of(&file, 1), leaf_of(&file, 4)};
    struct stat st;

    T_EQ(store_open(folder, 0, &second, why), -EWOULDBLOCK);
    T_CONTAINS(why, "another process");
    T_EQ(store_file_open(s, file.identity, &f, why), 0);
    T_TRUE(store_file_leaves(f) == NULL);
    T_EQ(store_file_list(f, other.list, other.list_bytes, why), STORE_E_BAD);
    T_EQ(store_file_list(f, file.list, file.list_bytes - 1, why), STORE_E_BAD);
    T_EQ(store_file_list(f, file.list, file.list_bytes, why), 0);
    T_EQ(store_file_list(f, other.list, other.list_bytes, why), 0); /* there is one */
    T_TRUE(store_file_leaves(f) && store_file_leaves(f)->count == LEAVES);
    two[0].data = file.data + 7; /* not its bytes */
    T_EQ(store_file_put(f, two, 2, why), 0);
    T_TRUE(two[0].wrong && !two[1].wrong);
    T_TRUE(!store_file_leaves(f)->present[1] && store_file_leaves(f)->present[4]);
    two[0] = leaf_of(&file, 0);
    two[0].bytes--;
    two[1] = leaf_of(&file, 3);
    two[1].leaf = LEAVES;
    T_EQ(store_file_put(f, two, 2, why), 0);
    T_TRUE(two[0].wrong && two[1].wrong);
    T_EQ(marked(&file), 1);
    /* readable by others, whatever the umask */
    T_EQ(stat(models, &st), 0);
    T_EQ(st.st_mode & 0777, 0755);
    T_EQ(stat(store_file_path(f), &st), 0);
    T_EQ(st.st_mode & 0777, 0644);
    T_EQ(st.st_size, BYTES);
    T_TRUE((uint64_t)st.st_blocks * 512 < 2 * LEAF); /* sparse */
    store_file_close(f);
    T_EQ(store_file_open(s, file.identity, &f, why), 0);
    T_TRUE(!store_file_leaves(f)->present[1] && store_file_leaves(f)->present[4]);
    T_EQ(put(f, &file, 0), 0);
    T_EQ(put(f, &file, 0), 0); /* once more */
    T_EQ(marked(&file), 2);
    T_EQ(store_file_check(f, 0, why), 0);
    store_file_close(f);
    store_close(s);
    empty();
}

/* A file or a list that is not what it was counts as not there; a leaf that is not is unmarked. */
TEST(damage)
{
    struct store *s = begin(0);
    struct store_file *f = NULL;
    char path[400];
    int fd;

    fill(s, &file, LEAVES);
    snprintf(path, sizeof(path), "%s/%s.onnx", models, file.hex);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    T_EQ(pwrite(fd, "x", 1, 2 * LEAF + 5), 1);
    T_EQ(marked(&file), -1);
    T_EQ(store_file_open(s, file.identity, &f, why), 0);
    T_EQ(store_file_check(f, 1, why), 0);
    T_EQ(store_file_check(f, 2, why), STORE_E_BAD);
    T_TRUE(!store_file_leaves(f)->present[2]);
    T_EQ(marked(&file), LEAVES - 1);
    T_EQ(put(f, &file, 2), 0);
    T_EQ(marked(&file), LEAVES);
    store_file_close(f);
    T_EQ(ftruncate(fd, LEAF), 0);
    T_EQ(store_file_open(s, file.identity, &f, why), 0);
    T_TRUE(store_file_leaves(f) == NULL);
    T_EQ(store_file_list(f, file.list, file.list_bytes, why), 0);
    T_EQ(marked(&file), 0);
    store_file_close(f);
    close(fd);
    strcat(path, ".leaves");
    T_EQ(truncate(path, 100), 0);
    T_EQ(store_file_open(s, file.identity, &f, why), 0);
    T_TRUE(store_file_leaves(f) == NULL);
    store_file_close(f);
    store_close(s);
    empty();
}

/* Everything that can fail fails once, at each place: what is marked stays right, and the next
 * attempt goes on. */
TEST(calls_that_fail)
{
    static const int failures[] = {ENOSPC, EIO};

    for (size_t k = 0; k < 2; k++) {
        bool failed = true;

        for (int at = 0; failed; at++) {
            struct store *s = begin(0);
            struct store_file *f = NULL;
            int wanted = failures[k] == EIO ? -EIO : STORE_E_FULL, r;

            T_EQ(store_file_open(s, file.identity, &f, why), 0);
            failing = at;
            failure = failures[k];
            r = store_file_list(f, file.list, file.list_bytes, why);
            for (size_t i = 0; r == 0 && i < LEAVES; i++) {
                r = put(f, &file, i);
            }
            failed = calls > at;
            failing = -1;
            T_TRUE(r == 0 || r == wanted);
            T_TRUE(r == 0 || strstr(why, file.hex) != NULL);
            T_TRUE(marked(&file) >= 0);
            T_TRUE(r == 0 || marked(&file) < (int)LEAVES);
            r = store_file_list(f, file.list, file.list_bytes, why);
            for (size_t i = 0; r == 0 && i < LEAVES; i++) {
                r = put(f, &file, i);
            }
            T_EQ(r, 0);
            T_EQ(marked(&file), LEAVES);
            store_file_close(f);
            store_close(s);
            empty();
        }
    }
}

static void forever(void)
{
    struct store *s = begin(0);
    struct store_file *f = NULL;

    if (store_file_open(s, file.identity, &f, why) != 0 ||
        store_file_list(f, file.list, file.list_bytes, why) != 0) {
        _exit(1);
    }
    for (size_t i = 0; i < LEAVES; i++) {
        if (put(f, &file, i) != 0) {
            _exit(1);
        }
    }
    _exit(0);
}

TEST(killed_at_any_moment)
{
    int complete = 0;

    for (int i = 0; i < t_times(60); i++) {
        pid_t child = fork();
        int status, count;

        if (child == 0) {
            forever();
        }
        usleep((useconds_t)t_range(0, 40000)); /* any moment: the check does not depend on it */
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        T_TRUE(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
        store_close(begin(0)); /* tidies up */
        count = marked(&file);
        T_TRUE(count >= 0);
        complete += count == LEAVES;
        if (count == LEAVES) {
            empty();
        }
    }
    fprintf(stderr, "%d times complete\n", complete);
    empty();
}

TEST(what_a_crash_left)
{
    char path[500], list[600];
    struct store *s = begin(0);

    fill(s, &file, 1);
    fill(s, &other, 1);
    store_close(s);
    snprintf(path, sizeof(path), "%s/%s.onnx", models, file.hex);
    snprintf(list, sizeof(list), "%s/%s.onnx.leaves.new", models, other.hex);
    T_EQ(unlink(path), 0);                                 /* its list is alone */
    T_EQ(close(open(list, O_CREAT | O_CLOEXEC, 0600)), 0); /* a draft */
    snprintf(path, sizeof(path), "%s/readme", models);
    T_EQ(close(open(path, O_CREAT | O_CLOEXEC, 0600)), 0);
    store_close(begin(0));
    snprintf(path, sizeof(path), "%s.onnx.leaves", file.hex);
    T_TRUE(!exists(path));
    snprintf(path, sizeof(path), "%s.onnx.leaves.new", other.hex);
    T_TRUE(!exists(path));
    T_TRUE(exists("readme")); /* not ours */
    T_EQ(marked(&other), 1);
    snprintf(path, sizeof(path), "%s/%s.onnx.leaves", models, other.hex);
    T_EQ(unlink(path), 0); /* without its list it would look complete */
    store_close(begin(0));
    snprintf(path, sizeof(path), "%s.onnx", other.hex);
    T_TRUE(!exists(path));
    empty();
}

/* The longest unused goes first; what is open never goes. */
TEST(room)
{
    struct leaf_file third = leaf_file_make(folder, "third", BYTES, 3);
    struct store *s = begin(0);
    struct store_file *f = NULL, *g = NULL;

    fill(s, &file, 3);
    fill(s, &other, 3);
    store_close(s);
    s = begin(8 * LEAF);
    T_EQ(store_file_open(s, other.identity, &f, why), 0);
    store_file_close(f); /* used later than the other */
    T_EQ(store_file_open(s, third.identity, &g, why), 0);
    T_EQ(store_file_list(g, third.list, third.list_bytes, why), 0);
    T_EQ(put(g, &third, 0), 0);
    T_EQ(marked(&file), 3);
    T_EQ(put(g, &third, 1), 0);
    T_EQ(marked(&file), 0); /* gone */
    T_EQ(marked(&other), 3);
    T_EQ(store_file_open(s, other.identity, &f, why), 0);
    T_EQ(put(g, &third, 2), 0);
    T_EQ(store_room(s, LEAF, why), 0);
    T_EQ(store_room(s, 4 * LEAF, why), STORE_E_FULL);
    T_CONTAINS(why, "8 MB");
    store_file_close(f);
    T_EQ(store_room(s, 40 * LEAF, why), STORE_E_FULL);
    T_EQ(marked(&other), 3); /* not removed in vain */
    T_EQ(store_room(s, 4 * LEAF, why), 0);
    T_EQ(marked(&other), 0);
    T_EQ(marked(&third), 3);
    store_file_close(g);
    store_close(s);
    leaf_file_free(&third);
    empty();
}

/* In a child, which has a disk of 8 MiB. Return: 0; 77; the line that is wrong. */
static int on_a_small_disk(void)
{
    struct store *s;
    struct store_file *f = NULL, *g = NULL;
    int r = 0;
    size_t i = 0;

    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mkdir(models, 0755) < 0 || mount("tmpfs", models, "tmpfs", 0, "size=7340032") < 0) {
        return 77;
    }
    s = begin(0);
    fill(s, &file, 3);
    if (store_file_open(s, other.identity, &f, why) != 0 ||
        store_file_list(f, other.list, other.list_bytes, why) != 0) {
        return __LINE__;
    }
    for (; r == 0 && i < LEAVES; i++) {
        r = put(f, &other, i);
    }
    /* The unused one made room, once nothing else helped. */
    if (r != 0 || marked(&file) != 0 || marked(&other) != (int)LEAVES) {
        return __LINE__;
    }
    /* Both are in use now: the disk stays full. */
    if (store_file_open(s, file.identity, &g, why) != 0 ||
        store_file_list(g, file.list, file.list_bytes, why) != 0) {
        return __LINE__;
    }
    for (i = 0; r == 0 && i < LEAVES; i++) {
        r = put(g, &file, i);
    }
    if (r != STORE_E_FULL || !strstr(why, "the disk is full") || marked(&file) != (int)i - 1 ||
        marked(&other) != (int)LEAVES) {
        return __LINE__;
    }
    store_file_close(f);
    for (i = 0, r = 0; r == 0 && i < LEAVES; i++) {
        r = put(g, &file, i);
    }
    return r == 0 && marked(&file) == (int)LEAVES ? 0 : __LINE__;
}

TEST(a_full_disk)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        _exit(on_a_small_disk());
    }
    waitpid(child, &status, 0);
    rmdir(models);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        T_SKIP("may not mount");
    }
    T_EQ(status, 0);
}

TEST(a_file_limit)
{
    struct store *s = begin(0);
    struct store_file *f = NULL;
    struct rlimit before, limit;

    signal(SIGXFSZ, SIG_IGN);
    T_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){LEAF, before.rlim_max};
    T_EQ(store_file_open(s, file.identity, &f, why), 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    T_EQ(store_file_list(f, file.list, file.list_bytes, why), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &before);
    T_CONTAINS(why, "File too large");
    T_EQ(marked(&file), 0);
    T_EQ(store_file_list(f, file.list, file.list_bytes, why), 0);
    setrlimit(RLIMIT_FSIZE, &limit);
    T_EQ(put(f, &file, 0), 0);
    T_EQ(put(f, &file, 1), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &before);
    T_EQ(marked(&file), 1);
    T_EQ(put(f, &file, 1), 0);
    store_file_close(f);
    store_close(s);
    empty();
}

static void clean(void)
{
    leaf_file_free(&file);
    leaf_file_free(&other);
    leaf_remove_all(folder);
}

__attribute__((constructor)) static void make_files(void)
{
    umask(077);
    if (!mkdtemp(folder)) {
        abort();
    }
    snprintf(models, sizeof(models), "%s/" STORE_FOLDER, folder);
    file = leaf_file_make(folder, "file", BYTES, 1);
    other = leaf_file_make(folder, "other", BYTES, 2);
    atexit(clean);
}

TEST_MAIN()
