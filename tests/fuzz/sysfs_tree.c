/* SPDX-License-Identifier: Apache-2.0 */
/* The files are in memory, not in a file system: an input looks for hundreds. The linker puts the
 * functions __wrap_x() in the place of the C library's (meson.build), for paths below ROOT. */
#include "tests/fuzz/sysfs_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/base.h"
#include "governor/kernel_file.h"
#include "tests/fuzz/replay.h"

#define ROOT "/sysfs-of-fuzzer"
#define BYTES_MAX 8192u
#define FDS_MAX 1024
#define FD_FIRST (1 << 24) /* no descriptor is that high */
#define FOLDERS_MAX 4u     /* open at a time */
#define SLOTS 512u

#define CPU "/sys/devices/system/cpu/"
#define THERMAL "/sys/class/thermal/"
#define RAPL "/sys/class/powercap/intel-rapl:0"
#define HWMON "/sys/class/hwmon/hwmon0/"
#define GROUP "/sys/fs/cgroup/a/b/"

/* What the governor and the daemon read. NULL: not there at the start. */
static const struct {
    const char *path, *text;
} files[] = {
    {CPU "present", "0-3"},
    {CPU "online", "0-3"},
    {CPU "isolated", ""},
    {CPU "cpu0/cpu_capacity", "1024"},
    {CPU "cpu1/cpu_capacity", "1024"},
    {CPU "cpu2/cpu_capacity", "446"},
    {CPU "cpu3/cpu_capacity", "446"},
    {CPU "cpu0/topology/core_cpus_list", "0"},
    {CPU "cpu1/topology/core_cpus_list", "1"},
    {CPU "cpu2/topology/core_cpus_list", "2"},
    {CPU "cpu3/topology/core_cpus_list", "3"},
    {CPU "cpu0/topology/cluster_cpus_list", "0-1"},
    {CPU "cpu1/topology/cluster_cpus_list", "0-1"},
    {CPU "cpu2/topology/cluster_cpus_list", "2-3"},
    {CPU "cpu3/topology/cluster_cpus_list", "2-3"},
    {CPU "cpu0/cache/index0/level", "2"},
    {CPU "cpu0/cache/index0/type", "Unified"},
    {CPU "cpu0/cache/index0/shared_cpu_list", "0-1"},
    {CPU "cpu2/cache/index0/level", "2"},
    {CPU "cpu2/cache/index0/type", "Unified"},
    {CPU "cpu2/cache/index0/shared_cpu_list", "2-3"},
    {CPU "cpufreq/policy0/related_cpus", "0-1"},
    {CPU "cpufreq/policy0/cpuinfo_max_freq", "2400000"},
    {CPU "cpufreq/policy0/scaling_min_freq", "400000"},
    {CPU "cpufreq/policy0/scaling_max_freq", "2400000"},
    {CPU "cpufreq/policy0/scaling_cur_freq", "1800000"},
    {CPU "cpufreq/policy0/scaling_governor", "schedutil"},
    {CPU "cpufreq/policy2/related_cpus", "2-3"},
    {CPU "cpufreq/policy2/cpuinfo_max_freq", "1800000"},
    {CPU "cpufreq/policy2/scaling_max_freq", "1800000"},
    {CPU "cpufreq/policy2/scaling_cur_freq", "600000"},
    {CPU "cpufreq/policy2/scaling_governor", "powersave"},
    {CPU "cpu0/thermal_throttle/core_throttle_count", "3"},
    {CPU "cpu0/thermal_throttle/package_throttle_count", "4"},
    {THERMAL "thermal_zone0/type", "cpu-thermal"},
    {THERMAL "thermal_zone0/temp", "45000"},
    {THERMAL "thermal_zone0/trip_point_0_type", "passive"},
    {THERMAL "thermal_zone0/trip_point_0_temp", "70000"},
    {THERMAL "thermal_zone0/trip_point_1_type", "critical"},
    {THERMAL "thermal_zone0/trip_point_1_temp", "100000"},
    {THERMAL "cooling_device0/type", "cpufreq-cpu0"},
    {THERMAL "cooling_device0/cur_state", "0"},
    {THERMAL "cooling_device0/max_state", "7"},
    {RAPL "/name", "package-0"},
    {RAPL "/energy_uj", "1000000"},
    {RAPL "/max_energy_range_uj", "262143328850"},
    {RAPL ":0/name", "dram"},
    {RAPL ":0/energy_uj", "5000"},
    {RAPL ":0/max_energy_range_uj", "65712999613"},
    {HWMON "name", "ina3221"},
    {HWMON "in1_label", "VDD_IN"},
    {HWMON "in1_input", "5000"},
    {HWMON "curr1_input", "900"},
    {"/proc/self/cgroup", "0::/a/b\n"},
    {"/proc/self/status", "Name:\tpiped\nCpus_allowed_list:\t0-3\n"},
    {"/proc/pressure/cpu", "some avg10=1.50 avg60=0.90 avg300=0.20 total=123456\n"},
    {"/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"},
    {"/proc/meminfo", "MemTotal: 4000 kB\nMemAvailable: 2000 kB\n"},
    {"/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory pids\n"},
    {GROUP "cpu.max", "150000 100000"},
    {GROUP "cpu.stat", "usage_usec 9\nnr_periods 8\nnr_throttled 7\nthrottled_usec 6\n"},
    {GROUP "cpuset.cpus.effective", "0-3"},
    {GROUP "memory.max", "67108864"},
    {GROUP "pids.max", "100"},
    {"/sys/fs/cgroup/a/cpu.max", "max 100000"},
    {"/sys/fs/cgroup/a/memory.max", "max"},
    /* not there */
    {CPU "possible", NULL},
    {CPU "cpu0/regs/identification/midr_el1", NULL},
    {CPU "cpu2/regs/identification/midr_el1", NULL},
    {CPU "cpu0/topology/thread_siblings_list", NULL},
    {CPU "cpu0/topology/package_cpus_list", NULL},
    {CPU "cpu200/topology/core_cpus_list", NULL},
    {CPU "cpufreq/policy0/bios_limit", NULL},
    {CPU "cpufreq/policy4294967295/related_cpus", NULL},
    {CPU "cpufreq/policy3/scaling_cur_freq", NULL},
    {"/sys/devices/cpu_core/cpus", NULL},
    {"/sys/devices/cpu_atom/cpus", NULL},
    {"/sys/devices/system/node/online", NULL},
    {"/sys/devices/system/node/node0/cpulist", NULL},
    {"/sys/devices/system/node/node1/cpulist", NULL},
    {THERMAL "thermal_zone9/temp", NULL},
    {THERMAL "cooling_device1/type", NULL},
    {THERMAL "cooling_device1/cur_state", NULL},
    {RAPL ":1/name", NULL},
    {RAPL ":1/energy_uj", NULL},
    {HWMON "power1_input", NULL},
    {HWMON "energy1_input", NULL},
    {HWMON "in2_label", NULL},
    {HWMON "in2_input", NULL},
    {HWMON "curr2_input", NULL},
    {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", NULL},
    {"/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", NULL},
    {"/sys/fs/cgroup/cpuset/a/cpuset.effective_cpus", NULL},
    {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", NULL},
};
#define COUNT base_array_count(files)

enum form { NOTHING, FILE_BYTES, FOLDER, LINK };

struct node {
    enum form form;
    bool changed;
    unsigned generation; /* another one is another file of the same name */
    size_t bytes, to;    /* to: of a LINK */
    char content[BYTES_MAX];
};

struct open_fd {
    bool open;
    size_t file, at;
    unsigned generation;
};

struct open_folder {
    bool open;
    size_t file, prefix_bytes;
    char prefix[256];
    struct dirent entry;
};

static struct node nodes[COUNT];
static struct open_fd fds[FDS_MAX];
static struct open_folder folders[FOLDERS_MAX];
static uint16_t slots[SLOTS]; /* 1 + a file, by the hash of its path */
static bool started;

static size_t hash(const char *path)
{
    uint64_t h = 14695981039346656037ull;

    for (; *path; path++) {
        h = (h ^ (unsigned char)*path) * 1099511628211ull;
    }
    return (size_t)(h ^ h >> 32);
}

/* Return: the path below ROOT, with its slash; NULL: it is elsewhere. */
static const char *below(const char *path)
{
    return started && strncmp(path, ROOT "/", sizeof(ROOT)) == 0 ? path + sizeof(ROOT) - 1 : NULL;
}

/* Return: the file, links followed; COUNT: there is none. */
static size_t find(const char *path)
{
    size_t at = hash(path);

    while (slots[at % SLOTS] && strcmp(files[slots[at % SLOTS] - 1u].path, path) != 0) {
        at++;
    }
    at = slots[at % SLOTS] ? slots[at % SLOTS] - 1u : COUNT;
    for (int links = 0; at < COUNT && nodes[at].form == LINK; links++) {
        at = links < 8 ? nodes[at].to : COUNT;
    }
    return at < COUNT && nodes[at].form != NOTHING ? at : COUNT;
}

static bool is_folder(const char *path)
{
    size_t bytes = strlen(path);

    for (size_t i = 0; i < COUNT; i++) {
        if (strncmp(files[i].path, path, bytes) == 0 && files[i].path[bytes] == '/') {
            return true;
        }
    }
    return false;
}

static struct node *change(size_t path)
{
    struct node *n = &nodes[path % COUNT];

    n->changed = true;
    n->generation += n->form != NOTHING;
    return n;
}

void sysfs_put(size_t path, const void *bytes, size_t count)
{
    struct node *n = &nodes[path % COUNT];

    MUST(count <= BYTES_MAX);
    if (n->form != FILE_BYTES) { /* else the same file has other bytes */
        n = change(path);
    }
    memcpy(n->content, bytes, count);
    n->bytes = count;
    n->form = FILE_BYTES;
    n->changed = true;
}

void sysfs_remove(size_t path)
{
    change(path)->form = NOTHING;
}

void sysfs_folder(size_t path)
{
    change(path)->form = FOLDER;
}

void sysfs_link(size_t path, size_t to)
{
    struct node *n = change(path);

    n->form = LINK;
    n->to = to % COUNT;
}

void sysfs_restore(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (nodes[i].changed && files[i].text) {
            sysfs_put(i, files[i].text, strlen(files[i].text));
        } else if (nodes[i].changed) {
            sysfs_remove(i);
        }
        nodes[i].changed = false;
        nodes[i].generation = 0;
    }
    for (size_t i = 0; i < FDS_MAX; i++) {
        MUST(!fds[i].open);
    }
    for (size_t i = 0; i < FOLDERS_MAX; i++) {
        MUST(!folders[i].open);
    }
}

size_t sysfs_paths(void)
{
    return COUNT;
}

const char *sysfs_start(void)
{
    struct gov_cpuset cpus;

    if (!started) {
        started = true;
        for (size_t i = 0; i < COUNT; i++) {
            size_t at = hash(files[i].path);

            while (slots[at % SLOTS]) {
                at++;
            }
            slots[at % SLOTS] = (uint16_t)(i + 1);
            nodes[i].changed = true;
        }
        sysfs_restore();
        if (gov_sysfs_cpulist(ROOT, &cpus, "sys/devices/system/cpu/present") != 0) {
            fprintf(stderr, "skipped: in this build, files are read by functions of other names\n");
            exit(77);
        }
    }
    return ROOT;
}

/* Return: NULL: it is not ours. */
static struct open_fd *ours(int fd)
{
    return fd >= FD_FIRST && fd < FD_FIRST + FDS_MAX ? &fds[fd - FD_FIRST] : NULL;
}

static int open_ours(const char *path)
{
    size_t file = find(path);

    errno = ENOENT;
    for (int i = 0; file < COUNT && i < FDS_MAX; i++) {
        if (!fds[i].open) {
            fds[i] = (struct open_fd){true, file, 0, nodes[file].generation};
            return FD_FIRST + i;
        }
    }
    return -1;
}

static ssize_t read_ours(const struct open_fd *f, void *to, size_t count, size_t at)
{
    const struct node *n = &nodes[f->file];

    if (n->form == FOLDER) {
        errno = EISDIR;
        return -1;
    }
    count = base_min(count, n->bytes - base_min(n->bytes, at));
    memcpy(to, n->content + at, count);
    return (ssize_t)count;
}

static int stat_ours(const struct open_fd *f, struct stat *ret)
{
    const struct node *n = &nodes[f->file];

    *ret = (struct stat){.st_mode = n->form == FOLDER ? S_IFDIR : S_IFREG,
                         .st_nlink = n->generation == f->generation && n->form != NOTHING};
    return 0;
}

/* Return: an earlier file is in the folder under the same name. */
static bool is_listed(const struct open_folder *f, size_t file)
{
    size_t bytes = f->prefix_bytes + strcspn(files[file].path + f->prefix_bytes, "/");

    for (size_t i = 0; i < file; i++) {
        if (strncmp(files[i].path, files[file].path, bytes) == 0 &&
            strchr("/", files[i].path[bytes])) {
            return true;
        }
    }
    return false;
}

/* The next name in the folder, each once. */
static struct dirent *next_ours(struct open_folder *f)
{
    while (f->file < COUNT) {
        size_t file = f->file++;
        const char *name = files[file].path + f->prefix_bytes;

        if (strncmp(files[file].path, f->prefix, f->prefix_bytes) == 0 && !is_listed(f, file)) {
            snprintf(f->entry.d_name, sizeof(f->entry.d_name), "%.*s", (int)strcspn(name, "/"),
                     name);
            return &f->entry;
        }
    }
    return NULL;
}

static struct open_folder *open_folder(const char *path)
{
    for (size_t i = 0; i < FOLDERS_MAX && is_folder(path); i++) {
        struct open_folder *f = &folders[i];

        if (!f->open) {
            *f = (struct open_folder){.open = true};
            f->prefix_bytes = (size_t)snprintf(f->prefix, sizeof(f->prefix), "%s/", path);
            return f;
        }
    }
    errno = ENOENT;
    return NULL;
}

static struct open_folder *our_folder(void *dir)
{
    return (char *)dir >= (char *)folders && (char *)dir < (char *)(folders + FOLDERS_MAX) ? dir
                                                                                           : NULL;
}

#define WRAP(type, name, parameters)                                                               \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters

/* Where files are large by default, the C library's functions have a second name. */
#define WRAP_OPEN(name)                                                                            \
    WRAP(int, name, (const char *path, int flags, ...))                                            \
    {                                                                                              \
        va_list args;                                                                              \
        mode_t mode;                                                                               \
        va_start(args, flags);                                                                     \
        mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;                                         \
        va_end(args);                                                                              \
        return below(path) ? open_ours(below(path)) : __real_##name(path, flags, mode);            \
    }
WRAP_OPEN(open)
WRAP_OPEN(open64)

#define WRAP_PREAD(name)                                                                           \
    WRAP(ssize_t, name, (int fd, void *to, size_t count, off_t at))                                \
    {                                                                                              \
        return ours(fd) ? read_ours(ours(fd), to, count, (size_t)at)                               \
                        : __real_##name(fd, to, count, at);                                        \
    }
WRAP_PREAD(pread)
WRAP_PREAD(pread64)

#define WRAP_FSTAT(name)                                                                           \
    WRAP(int, name, (int fd, struct stat *ret))                                                    \
    {                                                                                              \
        return ours(fd) ? stat_ours(ours(fd), ret) : __real_##name(fd, ret);                       \
    }
WRAP_FSTAT(fstat)
WRAP_FSTAT(fstat64)

#define WRAP_FOPEN(name)                                                                           \
    WRAP(FILE *, name, (const char *path, const char *mode))                                       \
    {                                                                                              \
        size_t file = below(path) ? find(below(path)) : COUNT;                                     \
        if (!below(path)) {                                                                        \
            return __real_##name(path, mode);                                                      \
        }                                                                                          \
        return file < COUNT && nodes[file].form == FILE_BYTES && nodes[file].bytes > 0             \
                   ? fmemopen(nodes[file].content, nodes[file].bytes, "r")                         \
                   : NULL;                                                                         \
    }
WRAP_FOPEN(fopen)
WRAP_FOPEN(fopen64)

#define WRAP_READDIR(name)                                                                         \
    WRAP(struct dirent *, name, (DIR * dir))                                                       \
    {                                                                                              \
        return our_folder(dir) ? next_ours(our_folder(dir)) : __real_##name(dir);                  \
    }
WRAP_READDIR(readdir)
WRAP_READDIR(readdir64)

WRAP(ssize_t, read, (int fd, void *to, size_t count))
{
    struct open_fd *f = ours(fd);
    ssize_t n = f ? read_ours(f, to, count, f->at) : __real_read(fd, to, count);

    if (f && n > 0) {
        f->at += (size_t)n;
    }
    return n;
}

WRAP(int, close, (int fd))
{
    if (ours(fd)) {
        MUST(ours(fd)->open);
        ours(fd)->open = false;
        return 0;
    }
    return __real_close(fd);
}

WRAP(int, access, (const char *path, int mode))
{
    if (below(path)) {
        errno = ENOENT;
        return find(below(path)) < COUNT || is_folder(below(path)) ? 0 : -1;
    }
    return __real_access(path, mode);
}

WRAP(DIR *, opendir, (const char *path))
{
    return below(path) ? (DIR *)open_folder(below(path)) : __real_opendir(path);
}

WRAP(int, closedir, (DIR * dir))
{
    if (our_folder(dir)) {
        our_folder(dir)->open = false;
        return 0;
    }
    return __real_closedir(dir);
}
