/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/weights/store.h - this board's files of other boards' models
 *
 * STATE_FOLDER/models/IDENTITY.onnx is a sparse file with the leaves that are there, and
 * IDENTITY.onnx.leaves beside it is its leaf list and which these are (base/leaves/leaves.h). The
 * daemon loads segments from them, so anybody may read them.
 *
 * A leaf is marked as present only when its bytes are what the list says and are on the disk. So
 * nothing false is marked, whenever a process or the power ends. No write changes a leaf that is
 * marked. Files are removed by name only: whoever has one open or mapped keeps it.
 *
 * An open file is in use. Others are removed, the longest unused first, when all together take more
 * than the limit, or when the disk is full.
 *
 * Threads: one at a time; calls wait for the disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/leaves/leaves.h"

#define STORE_FOLDER "models" /* in the state folder */
#define STORE_WHY_BYTES 256u

struct store;
struct store_file;

/* Named outcomes. Every failure also has a sentence, @ret_why. */
enum {
    STORE_E_BAD = 1,  /* other bytes than the identity or the leaf list says */
    STORE_E_FULL = 2, /* no room: the disk is full, or the limit is reached by files in use */
};

/** store_open() - makes the folder if need be, and removes what a crash left over. @bytes_max: of
 * all files; 0: only the disk's size. Return: 0; -EWOULDBLOCK: another process has it; -errno. */
int store_open(const char *state_folder, uint64_t bytes_max, struct store **ret,
               char ret_why[STORE_WHY_BYTES]);
/** store_close() - all files are closed before. @s may be NULL. Return: NULL. */
struct store *store_close(struct store *s);

/** store_file_open() - a file may be opened once at a time. What is damaged or not there counts as
 * a file of which nothing is present. Return: 0, -errno. */
int store_file_open(struct store *s, const uint8_t identity[MDL_HASH_BYTES],
                    struct store_file **ret, char ret_why[STORE_WHY_BYTES]);
/** store_file_close() - @f may be NULL. Return: NULL. */
struct store_file *store_file_close(struct store_file *f);
/** store_file_path() - absolute; of the file for the daemon. */
const char *store_file_path(const struct store_file *f);
/** store_file_leaves() - Return: the leaf list with what is present, until the next call; NULL:
 * there is none yet. */
const struct mdl_leaves *store_file_leaves(const struct store_file *f);

/** store_file_list() - takes the leaf list, as mdl_leaves_write() writes it. If there is one,
 * nothing changes. Return: 0; STORE_E_BAD: not that of the identity; STORE_E_FULL; -errno. */
int store_file_list(struct store_file *f, const void *data, size_t bytes,
                    char ret_why[STORE_WHY_BYTES]);

/** store_room() - removes unused files until @bytes more fit the limit. Return: 0; STORE_E_FULL:
 * there is not so much, and nothing was removed; -errno. */
int store_room(struct store *s, uint64_t bytes, char ret_why[STORE_WHY_BYTES]);

struct store_leaf {
    size_t leaf, bytes;
    const void *data;
    bool wrong; /* result: these are not its bytes; it is not written */
};
/** store_file_put() - writes @count leaves, of a file with a list, then marks them, but for wrong
 * ones. Return: 0; STORE_E_FULL, -errno: none is marked. */
int store_file_put(struct store_file *f, struct store_leaf *leaf, size_t count,
                   char ret_why[STORE_WHY_BYTES]);
/** store_file_check() - reads a leaf that is present again. Return: 0; STORE_E_BAD: it is damaged,
 * and no longer marked; -errno. */
int store_file_check(struct store_file *f, size_t leaf, char ret_why[STORE_WHY_BYTES]);
