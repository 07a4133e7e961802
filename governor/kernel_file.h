/* SPDX-License-Identifier: Apache-2.0 */
/**
 * governor/kernel_file.h - small files of the kernel that are read again and again
 *
 * Invariant: a file is either open and named by its path, or closed. Whatever happened to it (gone,
 * replaced, forbidden, garbled), a read returns a checked value or "unknown". A later read finds it
 * again once it is back. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "governor/sysfs.h"

#define GOV_FILE_PATH_MAX 320u  /* control groups of containers have long names */
#define GOV_FILES_OPEN_MAX 640u /* and at most half of what a process may have open */

/* What the files of one sampler share. */
struct gov_files {
    const char *root; /* borrowed while in use */
    bool live;        /* the running system's root: a file that went away fails to be read */
    size_t open_count, open_max; /* what is above is opened for each read */
    bool vanished;               /* set when an open file was gone; cleared by the owner */
};

struct gov_file {
    char path[GOV_FILE_PATH_MAX]; /* below the root; "" none: always unknown */
    bool open;
    int fd;        /* if open */
    unsigned skip; /* reads to let pass before it is tried to be opened */
    bool rare;     /* few machines have such a file: look for it five times less often */
    int error;     /* errno of the last attempt to open or read it; 0: it was read */
};

/** gov_file_set() - names it; closes what it was. A path that is too long counts as none. */
__attribute__((format(printf, 3, 4))) void gov_file_set(struct gov_files *all, struct gov_file *f,
                                                        const char *format, ...);
void gov_file_close(struct gov_files *all, struct gov_file *f);

/** gov_file_read() - the whole of it, at most @size - 1 bytes, terminated. Return: its length, 0 if
 * empty; -1: unknown, or longer. */
int gov_file_read(struct gov_files *all, struct gov_file *f, char *ret, size_t size);

/* As the functions of sysfs.h. Return: 0 or GOV_SYSFS_E_UNKNOWN; *ret is then untouched. */
int gov_file_text(struct gov_files *all, struct gov_file *f, char *ret, size_t size);
int gov_file_u64(struct gov_files *all, struct gov_file *f, uint64_t min, uint64_t max,
                 uint64_t *ret);
int gov_file_i64(struct gov_files *all, struct gov_file *f, int64_t min, int64_t max, int64_t *ret);
int gov_file_cpulist(struct gov_files *all, struct gov_file *f, struct gov_cpuset *ret);

/**
 * gov_dir_numbers() - the numbers N of the entries "<prefix>N" of a folder below @root, rising
 * The lowest @max are kept. Reads at most 65536 entries. Return: their count, 0 if there is no such
 * folder.
 */
size_t gov_dir_numbers(const char *root, const char *dir, const char *prefix, uint32_t *ret,
                       size_t max);
