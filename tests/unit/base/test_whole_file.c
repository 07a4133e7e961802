/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read as a whole, and names of what is no such file. */
#include "base/whole_file.h"

#include <pthread.h>
#include <sys/mman.h>

#include "base/base.h"
#include "tests/harness.h"

#define TEXT "{\"a\": 1}\0b"

static char folder[] = "/tmp/test-whole-file-XXXXXX";
static const char *const PATHS[] = {"file", "fifo", "link", "nowhere", "empty", "inner"};

static int there(void)
{
    static int fd = -1;

    if (fd < 0 && mkdtemp(folder)) {
        fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return fd;
}

static void make(const char *name, const void *data, size_t bytes, mode_t mode)
{
    base_autoclose int fd = openat(there(), name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    T_EQ(write(fd, data, bytes), (ssize_t)bytes);
    T_EQ(fchmod(fd, mode), 0);
}

static int read_it(const char *name, size_t bytes_max, char **ret, size_t *ret_bytes)
{
    struct whole_file f = {.folder = there(), .path = name, .bytes_max = bytes_max};

    return whole_file_read(&f, ret, ret_bytes);
}

TEST(a_file_is_read_with_its_nuls_and_ends_in_one)
{
    base_autofree char *text = NULL;
    size_t bytes = 0;

    make("file", TEXT, sizeof(TEXT) - 1, 0600);
    T_EQ(read_it("file", sizeof(TEXT) - 1, &text, &bytes), 0);
    T_EQ(bytes, sizeof(TEXT) - 1);
    T_EQ(memcmp(text, TEXT, sizeof(TEXT)), 0);
}

TEST(an_empty_file_is_an_empty_text)
{
    base_autofree char *text = NULL;
    size_t bytes = 9;

    make("empty", "", 0, 0600);
    T_EQ(read_it("empty", 0, &text, &bytes), 0);
    T_EQ(bytes, 0);
    T_STR(text, "");
}

TEST(a_file_that_is_too_large_is_not_read)
{
    char *text = NULL;
    size_t bytes = 9;

    make("file", TEXT, sizeof(TEXT) - 1, 0600);
    T_EQ(read_it("file", sizeof(TEXT) - 2, &text, &bytes), WHOLE_FILE_E_LARGE);
    T_TRUE(!text);
    T_EQ(bytes, 9);
}

TEST(what_is_no_file_neither_waits_nor_ends)
{
    char *text = NULL;
    size_t bytes;

    (void)mkfifoat(there(), "fifo", 0600);
    (void)mkdirat(there(), "inner", 0700);
    T_EQ(read_it("fifo", 100, &text, &bytes), WHOLE_FILE_E_KIND);
    T_EQ(read_it("inner", 100, &text, &bytes), WHOLE_FILE_E_KIND);
    T_EQ(read_it("/dev/zero", 100, &text, &bytes), WHOLE_FILE_E_KIND);
    T_EQ(read_it("nowhere", 100, &text, &bytes), -ENOENT);
    T_EQ(read_it("", 100, &text, &bytes), -ENOENT);
    T_STR(whole_file_why(WHOLE_FILE_E_KIND), "not a regular file");
    T_STR(whole_file_why(-ENOENT), "No such file or directory");
}

TEST(a_link_is_followed_unless_it_is_refused)
{
    struct whole_file f = {.folder = there(), .path = "link", .bytes_max = 100, .no_link = true};
    base_autofree char *text = NULL;
    size_t bytes;

    make("file", TEXT, sizeof(TEXT) - 1, 0600);
    (void)symlinkat("file", there(), "link");
    T_EQ(whole_file_read(&f, &text, &bytes), -ELOOP);
    T_EQ(read_it("link", 100, &text, &bytes), 0);
}

TEST(a_secret_that_others_may_read_is_refused)
{
    struct whole_file f = {
        .folder = there(), .path = "file", .bytes_max = 100, .refused = S_IRWXG | S_IRWXO};
    base_autofree char *text = NULL;
    size_t bytes;

    make("file", TEXT, sizeof(TEXT) - 1, 0640);
    T_EQ(whole_file_read(&f, &text, &bytes), WHOLE_FILE_E_OPEN);
    f.refused = S_IRWXO;
    T_EQ(whole_file_read(&f, &text, &bytes), 0);
}

TEST(an_open_file_is_read_from_its_beginning_and_stays_where_it_was)
{
    base_autoclose int fd = -1;
    struct whole_file f = {.bytes_max = 100};
    base_autofree char *text = NULL;
    size_t bytes = 0;

    make("file", "0123456789", 10, 0600);
    fd = f.folder = openat(there(), "file", O_RDONLY | O_CLOEXEC);
    T_EQ(lseek(fd, 7, SEEK_SET), 7);
    T_EQ(whole_file_read(&f, &text, &bytes), 0);
    T_EQ(bytes, 10);
    T_STR(text, "0123456789");
    T_EQ(lseek(fd, 0, SEEK_CUR), 7);
}

TEST(a_part_ends_where_the_file_ends)
{
    base_autoclose int fd = -1;
    char part[8] = "";

    make("file", "0123456789", 10, 0600);
    fd = openat(there(), "file", O_RDONLY | O_CLOEXEC);
    T_EQ(whole_file_part(fd, 3, part, 4), 4);
    T_EQ(memcmp(part, "3456", 4), 0);
    T_EQ(whole_file_part(fd, 8, part, 4), 2);
    T_EQ(whole_file_part(fd, 11, part, 4), 0);
    T_EQ(whole_file_part(-1, 0, part, 4), -EBADF);
}

/* ---- a file that changes while it is read ---- */

static int changing = -1;
static _Atomic bool done;

static void *change(void *unused)
{
    while (!done) {
        (void)!ftruncate(changing, 1000);
        (void)!ftruncate(changing, 3000);
    }
    return unused;
}

TEST(a_file_that_changes_is_whole_or_refused)
{
    struct whole_file f = {.bytes_max = 3000};
    pthread_t thread;

    f.folder = changing = memfd_create("changing", MFD_CLOEXEC);
    T_EQ(ftruncate(changing, 1000), 0);
    T_EQ(pthread_create(&thread, NULL, change, NULL), 0);
    for (int i = 0; i < 2000; i++) {
        base_autofree char *text = NULL;
        size_t bytes = 0;
        int r = whole_file_read(&f, &text, &bytes);

        T_TRUE(r == 0 ? bytes == 1000 || bytes == 3000 : r == WHOLE_FILE_E_CHANGED);
    }
    done = true;
    pthread_join(thread, NULL);
    close(changing);
}

/* of the kernel: their size is none */
TEST(a_file_that_is_longer_than_it_says_is_refused)
{
    char *text = NULL;
    size_t bytes;

    T_EQ(read_it("/proc/self/status", 100000, &text, &bytes), WHOLE_FILE_E_CHANGED);
}

TEST_LAST(clean)
{
    for (size_t i = 0; i < base_array_count(PATHS); i++) {
        (void)unlinkat(there(), PATHS[i], strcmp(PATHS[i], "inner") == 0 ? AT_REMOVEDIR : 0);
    }
    T_EQ(rmdir(folder), 0);
}

TEST_MAIN()
