/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/kernel_file.h - small files of the kernel, read with suspicion, once or again and again
 *
 * Invariant: whatever a path leads to (a pipe, a directory, a huge or binary file, nothing), a read
 * neither blocks on it, nor follows it without bound, nor trusts it: the answer is a checked value
 * or "unknown". A struct gov_file is either open and named by its path, or closed; whatever
 * happened to it (gone, replaced, forbidden, garbled), a later read finds it again once it is back.
 *
 * Paths are relative to @root and given as a printf format; one that gets too long is "unknown" as
 * well. No allocation; one thread at a time, any where there is no struct gov_files; blocks only as
 * long as the kernel takes to answer a read of a regular file.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "governor/sysfs.h"

#define GOV_FILE_PATH_MAX 320u  /* control groups of containers have long names */
#define GOV_FILES_OPEN_MAX 640u /* and at most half of what a process may have open */

/* What the files of one sampler share. */
struct gov_files {
    const char *root; /* borrowed while in use */
    bool live;        /* the running system's root: a file that went away fails to be read */
    size_t open_count, open_max; /* what is above is opened for each read */
    LIST_HEAD(, gov_file) opened;
    bool vanished; /* set when an open file was gone; cleared by the owner */
};

struct gov_file {
    char path[GOV_FILE_PATH_MAX]; /* below the root; "" none: always unknown */
    bool open;
    int fd; /* if open, as the next one */
    LIST_ENTRY(gov_file) linked;
    unsigned skip; /* reads to let pass before it is tried to be opened */
    bool rare;     /* few machines have such a file: look for it five times less often */
    int error;     /* errno of the last attempt to open or read it; 0: it was read */
};

/** gov_file_set() - names it; closes what it was. A path that is too long counts as none. */
__attribute__((format(printf, 3, 4))) void gov_file_set(struct gov_files *all, struct gov_file *f,
                                                        const char *format, ...);
void gov_file_close(struct gov_files *all, struct gov_file *f);
/** gov_files_close() - closes all that are open. */
void gov_files_close(struct gov_files *all);

/** gov_file_read() - the whole of it, at most @size - 1 bytes, terminated. Return: its length, 0 if
 * empty; -1: unknown, or longer. */
int gov_file_read(struct gov_files *all, struct gov_file *f, char *ret, size_t size);

/** gov_file_head() - as gov_file_read(), but of a longer file its first @size - 1 bytes. */
int gov_file_head(struct gov_files *all, struct gov_file *f, char *ret, size_t size);

/* As gov_sysfs_text() and its like below. Return: 0 or GOV_SYSFS_E_UNKNOWN; *ret is then untouched.
 */
int gov_file_text(struct gov_files *all, struct gov_file *f, char *ret, size_t size);
int gov_file_u64(struct gov_files *all, struct gov_file *f, uint64_t min, uint64_t max,
                 uint64_t *ret);
int gov_file_i64(struct gov_files *all, struct gov_file *f, int64_t min, int64_t max, int64_t *ret);
int gov_file_cpulist(struct gov_files *all, struct gov_file *f, struct gov_cpuset *ret);

/**
 * gov_sysfs_text() - one line of printable text, without the white space around it
 * @ret: @size bytes, terminated on success. Return: 0, or GOV_SYSFS_E_UNKNOWN: missing, unreadable,
 * no regular file, empty, not printable, or longer than @size - 1 (or GOV_SYSFS_TEXT_MAX).
 */
__attribute__((format(printf, 4, 5))) int gov_sysfs_text(const char *root, char *ret, size_t size,
                                                         const char *format, ...);

/** gov_sysfs_u64() - a decimal or 0x number in [@min, @max]. Return: 0 or GOV_SYSFS_E_UNKNOWN. */
__attribute__((format(printf, 5, 6))) int
gov_sysfs_u64(const char *root, uint64_t min, uint64_t max, uint64_t *ret, const char *format, ...);

/** gov_sysfs_cpulist() - a CPU list ("0-3,8,10-11"); an empty file is an empty set. Return: 0 or
 * GOV_SYSFS_E_UNKNOWN. */
__attribute__((format(printf, 3, 4))) int
gov_sysfs_cpulist(const char *root, struct gov_cpuset *ret, const char *format, ...);

/** gov_policy_cpus() - the CPUs of a cpufreq policy, by its related_cpus; without that file, the
 * CPU that it is numbered after. */
void gov_policy_cpus(const char *root, unsigned policy, struct gov_cpuset *ret);

/** gov_root_is_live() - Return: @root is the running system's, not a test's tree. */
bool gov_root_is_live(const char *root);

/**
 * gov_allowed_cpus() - the affinity of the main thread, whichever thread calls
 * The kernel keeps it inside the cpuset of the control group. For another root than "/":
 * Cpus_allowed_list of proc/self/status below it. Return: 0 or GOV_SYSFS_E_UNKNOWN (*ret then
 * untouched; also for an empty set).
 */
int gov_allowed_cpus(const char *root, struct gov_cpuset *ret);

/** gov_exists() - Return: there is something at @path below @root. */
bool gov_exists(const char *root, const char *path);

/**
 * gov_dir_numbers() - the numbers N of the entries "<prefix>N" of a folder below @root, rising
 * The lowest @max are kept. Reads at most 65536 entries. Return: their count, 0 if there is no such
 * folder.
 */
size_t gov_dir_numbers(const char *root, const char *dir, const char *prefix, uint32_t *ret,
                       size_t max);

/** gov_dir_names() - the entries of a folder below @root with names of less than GOV_NAME_MAX
 * printable bytes, in their order; of more than @max any. Return: their count, 0 if there is no
 * such folder. */
size_t gov_dir_names(const char *root, const char *dir, char (*ret)[GOV_NAME_MAX], size_t max);
