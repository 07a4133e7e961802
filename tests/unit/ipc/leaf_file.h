/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/ipc/leaf_file.h - a file of random bytes with its leaf list, folders to work in */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/leaves/leaves.h"
#include "tests/harness.h"

#define LEAF MDL_HASH_LEAF_BYTES

struct leaf_file {
    uint8_t *data;
    size_t bytes, list_bytes;
    unsigned char *list;
    struct mdl_leaves leaves;
    uint8_t identity[MDL_HASH_BYTES];
    char hex[65], path[256];
};

/* Writes @folder/@name as well. */
static inline struct leaf_file leaf_file_make(const char *folder, const char *name, size_t bytes,
                                              uint64_t seed)
{
    struct leaf_file f = {.bytes = bytes, .data = malloc(bytes + 8)};
    int fd;

    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t x = base_splitmix64(&seed);

        memcpy(f.data + i, &x, 8);
    }
    snprintf(f.path, sizeof(f.path), "%s/%s", folder, name);
    fd = open(f.path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, f.data, bytes) != (ssize_t)bytes ||
        mdl_leaves_of_file(fd, bytes, 1, &f.leaves) < 0) {
        abort();
    }
    close(fd);
    f.list_bytes = mdl_leaves_bytes(&f.leaves);
    f.list = malloc(f.list_bytes);
    mdl_leaves_write(&f.leaves, f.list);
    mdl_leaves_hash(&f.leaves, f.hex);
    sodium_hex2bin(f.identity, sizeof(f.identity), f.hex, 64, NULL, NULL, NULL);
    return f;
}

static inline void leaf_file_free(struct leaf_file *f)
{
    unlink(f->path);
    mdl_leaves_deinit(&f->leaves);
    free(f->list);
    free(f->data);
}

/* Removes files of a folder of folders, then it. */
static inline void leaf_remove_all(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;

    while (d && (e = readdir(d)) != NULL) {
        char *path = NULL;

        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        }
        if (asprintf(&path, "%s/%s", folder, e->d_name) > 0 && unlink(path) < 0) {
            leaf_remove_all(path);
        }
        free(path);
    }
    if (d) {
        closedir(d);
    }
    rmdir(folder);
}
