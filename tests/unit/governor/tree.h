/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/governor/tree.h - sysfs trees from a compact description
 *
 * Trees are written from the kernel's documented formats (Documentation/ABI/testing/
 * sysfs-devices-system-cpu and admin-guide/cputopology.rst), one file a line:
 *     "path = text"     text ends with a newline in the file
 *     "[0-3] path = text"    the same for every CPU of the list, below cpuN/
 * Paths are below sys/devices/system/cpu unless they start with '/': then below the tree's root.
 */
#pragma once

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "governor/sysfs.h"

#define TREE_CPU "sys/devices/system/cpu/"

struct tree {
    char root[64];
};

static inline int tree_remove_one(const char *path, const struct stat *st, int type,
                                  struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

static inline void tree_deinit(struct tree *t)
{
    if (t->root[0]) {
        nftw(t->root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
        t->root[0] = '\0';
    }
}
#define tree_auto base_cleanup(tree_deinit)

/* Path of @file in the tree, its folders made. */
static inline const char *tree_path(const struct tree *t, const char *file)
{
    static char path[512];

    snprintf(path, sizeof(path), "%s/%s%s", t->root, file[0] == '/' ? "" : TREE_CPU,
             file + (file[0] == '/'));
    for (char *c = path + strlen(t->root) + 1; (c = strchr(c, '/')) != NULL; c++) {
        *c = '\0';
        mkdir(path, 0755);
        *c = '/';
    }
    return path;
}

static inline void tree_put_bytes(const struct tree *t, const char *file, const void *bytes,
                                  size_t count)
{
    FILE *f = fopen(tree_path(t, file), "w");

    if (!f || fwrite(bytes, 1, count, f) != count || fclose(f) != 0) {
        fprintf(stderr, "cannot write %s\n", file);
        abort();
    }
}

static inline void tree_put(const struct tree *t, const char *file, const char *text)
{
    char line[512];
    int n = snprintf(line, sizeof(line), "%s\n", text);

    tree_put_bytes(t, file, line, (size_t)n);
}

static inline void tree_line(const struct tree *t, char *line)
{
    char *eq = strstr(line, " = "), *text = eq + 3, file[256];
    struct gov_cpuset cpus;

    *eq = '\0';
    if (line[0] != '[') {
        tree_put(t, line, text);
        return;
    }
    char *close = strchr(line, ']');
    *close = '\0';
    if (gov_cpulist_parse(line + 1, &cpus) != 0) {
        abort();
    }
    for (int32_t cpu = gov_cpuset_next(&cpus, 0); cpu >= 0;
         cpu = gov_cpuset_next(&cpus, (size_t)cpu + 1)) {
        snprintf(file, sizeof(file), "cpu%d/%s", (int)cpu, close + 2);
        tree_put(t, file, text);
    }
}

/* A tree of a few hundred files takes milliseconds in memory and far longer on a disk. */
static inline struct tree tree_new(const char *description)
{
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    struct tree t;
    base_autofree char *copy = strdup(description);
    char *save = NULL;

    snprintf(t.root, sizeof(t.root), "%s/piped-tree-XXXXXX", folder);
    if (!copy || !mkdtemp(t.root)) {
        abort();
    }
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        tree_line(&t, line);
    }
    return t;
}
