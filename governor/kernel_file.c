/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/kernel_file.h"

#include <dirent.h>
#include <stdarg.h>

#include "base/base.h"

#define SKIP_READS 4u       /* so every fifth read of a missing file tries again */
#define SKIP_RARE_READS 24u /* of one that is hardly ever there */
#define ENTRIES_MAX 65536u

void gov_file_close(struct gov_files *all, struct gov_file *f)
{
    if (f->open) {
        close(f->fd);
        f->open = false;
        all->open_count--;
    }
}

void gov_file_set(struct gov_files *all, struct gov_file *f, const char *format, ...)
{
    va_list args;

    gov_file_close(all, f);
    f->skip = 0;
    f->error = 0;
    va_start(args, format);
    int n = vsnprintf(f->path, sizeof(f->path), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(f->path)) {
        f->path[0] = '\0';
    }
}

/* O_NONBLOCK so that a pipe or device in place of the file cannot hold us. */
static int open_file(struct gov_files *all, struct gov_file *f)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", all->root, f->path);

    if (f->path[0] == '\0' || n < 0 || (size_t)n >= sizeof(path)) {
        errno = ENOENT;
        return -1;
    }
    base_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    int ret = fd;
    fd = -1;
    return ret;
}

static ssize_t read_start(int fd, char *ret, size_t size)
{
    ssize_t n;

    do {
        n = pread(fd, ret, size, 0);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* A file of the kernel that was removed fails to be read; one of a test's tree has no name left. */
static bool is_stale(const struct gov_files *all, int fd, ssize_t n)
{
    struct stat st;

    if (n < 0) {
        return errno == ENODEV || errno == ENOENT || errno == EIO || errno == ENXIO;
    }
    return !all->live && (fstat(fd, &st) < 0 || st.st_nlink == 0);
}

static ssize_t read_open(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    ssize_t n = read_start(f->fd, ret, size);

    if (!is_stale(all, f->fd, n)) {
        f->error = n < 0 ? errno : 0;
        return n;
    }
    gov_file_close(all, f);
    all->vanished = true;
    errno = ENOENT;
    return -1;
}

static ssize_t read_fresh(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    if (f->skip > 0) {
        f->skip--;
        return -1;
    }
    base_autoclose int fd = open_file(all, f);
    ssize_t n = fd < 0 ? -1 : read_start(fd, ret, size);

    if (n < 0) {
        f->error = errno;
        f->skip = f->rare ? SKIP_RARE_READS : SKIP_READS;
        return -1;
    }
    f->error = 0;
    if (all->open_count < all->open_max) {
        f->fd = fd;
        fd = -1;
        f->open = true;
        all->open_count++;
    }
    return n;
}

int gov_file_read(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    ssize_t n = -1;
    bool was_open = f->open;

    if (was_open) {
        n = read_open(all, f, ret, size);
    }
    if (!f->open) {
        if (was_open) {
            f->skip = 0;
        }
        n = read_fresh(all, f, ret, size);
    }
    if (n < 0 || (size_t)n >= size) {
        return -1;
    }
    ret[n] = '\0';
    return (int)n;
}

int gov_file_text(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    char buffer[GOV_SYSFS_TEXT_MAX], line[GOV_SYSFS_TEXT_MAX];
    int n = gov_file_read(all, f, buffer, sizeof(buffer));

    if (n < 0 ||
        gov_line_parse(buffer, (size_t)n, line, base_min(size, (size_t)sizeof(line))) != 0 ||
        line[0] == '\0') {
        return GOV_SYSFS_E_UNKNOWN;
    }
    memcpy(ret, line, strlen(line) + 1);
    return 0;
}

/* Numbers are short: a text that fills the buffer is not a number. */
static int read_number(struct gov_files *all, struct gov_file *f, char ret[32])
{
    char buffer[64];
    int n = gov_file_read(all, f, buffer, sizeof(buffer));

    return n < 0 ? GOV_SYSFS_E_UNKNOWN : gov_line_parse(buffer, (size_t)n, ret, 32);
}

int gov_file_u64(struct gov_files *all, struct gov_file *f, uint64_t min, uint64_t max,
                 uint64_t *ret)
{
    char text[32];

    return read_number(all, f, text) != 0 ? GOV_SYSFS_E_UNKNOWN
                                          : gov_u64_parse(text, min, max, ret);
}

int gov_file_i64(struct gov_files *all, struct gov_file *f, int64_t min, int64_t max, int64_t *ret)
{
    char text[32];
    uint64_t size;

    if (read_number(all, f, text) != 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    bool minus = text[0] == '-';
    if (gov_u64_parse(text + minus, 0, INT64_MAX, &size) != 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    int64_t value = minus ? -(int64_t)size : (int64_t)size;
    if (value < min || value > max) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    *ret = value;
    return 0;
}

int gov_file_cpulist(struct gov_files *all, struct gov_file *f, struct gov_cpuset *ret)
{
    char buffer[GOV_SYSFS_TEXT_MAX], line[GOV_SYSFS_TEXT_MAX];
    int n = gov_file_read(all, f, buffer, sizeof(buffer));

    if (n < 0 || gov_line_parse(buffer, (size_t)n, line, sizeof(line)) != 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    return gov_cpulist_parse(line, ret);
}

/* Keeps the lowest @max in rising order. */
static size_t insert(uint32_t *list, size_t count, size_t max, uint32_t number)
{
    size_t at = count;

    while (at > 0 && list[at - 1] > number) {
        at--;
    }
    if (at == max) {
        return count;
    }
    if (count < max) {
        count++;
    }
    memmove(list + at + 1, list + at, (count - at - 1) * sizeof(list[0]));
    list[at] = number;
    return count;
}

size_t gov_dir_numbers(const char *root, const char *dir, const char *prefix, uint32_t *ret,
                       size_t max)
{
    char path[PATH_MAX];
    size_t count = 0, length = strlen(prefix);
    int n = snprintf(path, sizeof(path), "%s/%s", root, dir);
    DIR *d = n < 0 || (size_t)n >= sizeof(path) ? NULL : opendir(path);
    struct dirent *e;

    for (size_t i = 0; d && i < ENTRIES_MAX && (e = readdir(d)) != NULL; i++) {
        const char *digits = e->d_name + length;
        uint64_t number;

        if (strncmp(e->d_name, prefix, length) == 0 && strspn(digits, "0123456789") < 10 &&
            digits[strspn(digits, "0123456789")] == '\0' &&
            (digits[0] != '0' || digits[1] == '\0') &&
            gov_u64_parse(digits, 0, UINT32_MAX, &number) == 0) {
            count = insert(ret, count, max, (uint32_t)number);
        }
    }
    if (d) {
        closedir(d);
    }
    return count;
}
