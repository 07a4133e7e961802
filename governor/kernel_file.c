/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/kernel_file.h"

#include <dirent.h>
#include <sched.h>

#include "base/base.h"

#define SKIP_READS 4u       /* so every fifth read of a missing file tries again */
#define SKIP_RARE_READS 24u /* of one that is hardly ever there */
#define ENTRIES_MAX 65536u

/* The whole path of what is below @root. Return: false: it is too long. */
static bool below(const char *root, const char *path, char ret[PATH_MAX])
{
    int n = snprintf(ret, PATH_MAX, "%s/%s", root, path);

    return n > 0 && n < PATH_MAX;
}

bool gov_exists(const char *root, const char *path)
{
    char whole[PATH_MAX];

    return below(root, path, whole) && access(whole, F_OK) == 0;
}

void gov_file_close(struct gov_files *all, struct gov_file *f)
{
    if (f->open) {
        close(f->fd);
        f->open = false;
        LIST_REMOVE(f, linked);
        all->open_count--;
    }
}

void gov_files_close(struct gov_files *all)
{
    while (!LIST_EMPTY(&all->opened)) {
        gov_file_close(all, LIST_FIRST(&all->opened));
    }
}

static void set_path(struct gov_file *f, const char *format, va_list args)
{
    int n = vsnprintf(f->path, sizeof(f->path), format, args);

    if (n < 0 || (size_t)n >= sizeof(f->path)) {
        f->path[0] = '\0';
    }
}

void gov_file_set(struct gov_files *all, struct gov_file *f, const char *format, ...)
{
    va_list args;

    gov_file_close(all, f);
    f->skip = 0;
    f->error = 0;
    va_start(args, format);
    set_path(f, format, args);
    va_end(args);
}

/* O_NONBLOCK so that a pipe or device in place of the file cannot hold us. Return: as open(). */
static int open_file(struct gov_files *all, struct gov_file *f)
{
    char path[PATH_MAX];
    struct stat st;

    if (f->path[0] == '\0' || !below(all->root, f->path, path)) {
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
    return base_take_fd(&fd);
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

/* Return: as pread(). */
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

/* Opens the file; for a while not if that failed. Return: as pread(). */
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
        f->fd = base_take_fd(&fd);
        f->open = true;
        LIST_INSERT_HEAD(&all->opened, f, linked);
        all->open_count++;
    }
    return n;
}

/* Return: as pread(). */
static ssize_t read_file(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
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
    return n;
}

int gov_file_read(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    ssize_t n = read_file(all, f, ret, size);

    if (n < 0 || (size_t)n >= size) {
        return -1;
    }
    ret[n] = '\0';
    return (int)n;
}

int gov_file_head(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    ssize_t n = read_file(all, f, ret, size - 1);

    ret[base_max(n, (ssize_t)0)] = '\0';
    return (int)n;
}

/* One trimmed line, which may be empty. Return: 0 or GOV_SYSFS_E_UNKNOWN. */
static int read_line(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    char buffer[GOV_SYSFS_TEXT_MAX + 1];
    int n = gov_file_read(all, f, buffer, sizeof(buffer));

    return n < 0 ? GOV_SYSFS_E_UNKNOWN : gov_line_parse(buffer, (size_t)n, ret, size);
}

int gov_file_text(struct gov_files *all, struct gov_file *f, char *ret, size_t size)
{
    char line[GOV_SYSFS_TEXT_MAX];

    if (read_line(all, f, line, base_min(size, sizeof(line))) != 0 || line[0] == '\0') {
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
    char line[GOV_SYSFS_TEXT_MAX];

    return read_line(all, f, line, sizeof(line)) != 0 ? GOV_SYSFS_E_UNKNOWN
                                                      : gov_cpulist_parse(line, ret);
}

/* ---- files that are read once ---- */

int gov_sysfs_text(const char *root, char *ret, size_t size, const char *format, ...)
{
    struct gov_files once = {.root = root};
    struct gov_file file = {0};
    va_list args;

    va_start(args, format);
    set_path(&file, format, args);
    va_end(args);
    return gov_file_text(&once, &file, ret, size);
}

int gov_sysfs_u64(const char *root, uint64_t min, uint64_t max, uint64_t *ret, const char *format,
                  ...)
{
    struct gov_files once = {.root = root};
    struct gov_file file = {0};
    va_list args;

    va_start(args, format);
    set_path(&file, format, args);
    va_end(args);
    return gov_file_u64(&once, &file, min, max, ret);
}

int gov_sysfs_cpulist(const char *root, struct gov_cpuset *ret, const char *format, ...)
{
    struct gov_files once = {.root = root};
    struct gov_file file = {0};
    va_list args;

    va_start(args, format);
    set_path(&file, format, args);
    va_end(args);
    return gov_file_cpulist(&once, &file, ret);
}

void gov_policy_cpus(const char *root, unsigned policy, struct gov_cpuset *ret)
{
    char text[GOV_SYSFS_TEXT_MAX], *save = NULL;

    memset(ret, 0, sizeof(*ret));
    gov_cpuset_add(ret, policy);
    if (gov_sysfs_text(root, text, sizeof(text),
                       "sys/devices/system/cpu/cpufreq/policy%u/related_cpus", policy) != 0) {
        return;
    }
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        struct gov_cpuset set;

        if (gov_cpulist_parse(word, &set) == 0) {
            for (size_t i = 0; i < base_array_count(set.bits); i++) {
                ret->bits[i] |= set.bits[i];
            }
        }
    }
}

/* ---- the process ---- */

bool gov_root_is_live(const char *root)
{
    return strcmp(root, "/") == 0 || root[0] == '\0';
}

/* Stage threads are pinned and would say less than the main thread. */
static int read_affinity(struct gov_cpuset *ret)
{
    /* the kernel's sets are arrays of unsigned long, the bits from the lowest on, as ours */
    struct gov_cpuset set = {0};

    _Static_assert(sizeof(unsigned long) == sizeof(set.bits[0]) ||
                       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                   "the kernel's words and ours have the same bits");
    if (sched_getaffinity(getpid(), sizeof(set.bits), (cpu_set_t *)set.bits) < 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    *ret = set;
    return 0;
}

static int read_status(const char *root, struct gov_cpuset *ret)
{
    static const char key[] = "\nCpus_allowed_list:";
    struct gov_files once = {.root = root};
    struct gov_file file = {.path = "proc/self/status"};
    struct gov_cpuset set;
    char text[GOV_SYSFS_TEXT_MAX], list[GOV_SYSFS_TEXT_MAX];
    int n = gov_file_read(&once, &file, text, sizeof(text));
    char *at = n < 0 ? NULL : strstr(text, key);
    if (!at) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    at += strlen(key);
    if (gov_line_parse(at, strcspn(at, "\n"), list, sizeof(list)) != 0 ||
        gov_cpulist_parse(list, &set) != 0 || gov_cpuset_next(&set, 0) < 0) {
        return GOV_SYSFS_E_UNKNOWN;
    }
    *ret = set;
    return 0;
}

int gov_allowed_cpus(const char *root, struct gov_cpuset *ret)
{
    return gov_root_is_live(root) ? read_affinity(ret) : read_status(root, ret);
}

/* ---- folders ---- */

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
    DIR *d = below(root, dir, path) ? opendir(path) : NULL;
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

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

size_t gov_dir_names(const char *root, const char *dir, char (*ret)[GOV_NAME_MAX], size_t max)
{
    char path[PATH_MAX], line[GOV_NAME_MAX];
    size_t count = 0;
    DIR *d = below(root, dir, path) ? opendir(path) : NULL;
    struct dirent *e;

    while (d && count < max && (e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.' &&
            gov_line_parse(e->d_name, strlen(e->d_name), line, sizeof(line)) == 0) {
            snprintf(ret[count++], sizeof(*ret), "%s", line);
        }
    }
    if (d) {
        closedir(d);
    }
    qsort(ret, count, sizeof(*ret), by_name);
    return count;
}
