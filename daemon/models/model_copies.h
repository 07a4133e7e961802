/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/models/model_copies.h - models that a client may read and the daemon may not
 *
 * The client sends the model's files as descriptors, with their names below the model's folder. The
 * daemon copies them into a folder of the state directory and loads the copy by its path, like
 * every other model: it can be loaded again for a hot swap, nobody changes or truncates it, and a
 * descriptor that is a pipe or a folder is refused before anything is mapped. What is learned about
 * the model is kept by the hash of its bytes, so a second copy finds it.
 *
 * There are two places. A copy in "loaded" goes when its model is gone, and at the next start. One
 * in "saved" is named by the list of saved models (daemon/config/saved.c) and goes when that
 * forgets it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/models/loading.h"

struct dmn_config;
struct dmn_models;

#define DMN_SENT_FILES_MAX 64u /* of one model; as many descriptors as libuv reads at once */

/* The files that came with a call; the first is the model. */
struct dmn_sent_files {
    int fd[DMN_SENT_FILES_MAX];     /* owned */
    char *name[DMN_SENT_FILES_MAX]; /* owned; below the model's folder: path_below.h */
    size_t count;
    bool save;   /* copy them to where the list of saved models looks */
    bool copied; /* result: the load's path is that of a copy */
};

/**
 * dmn_sent_files_place() - lets @l load what was sent: by its path if the daemon may read the same
 * files there, else from a copy, whose path becomes the load's
 *
 * @state_dir: NULL: nothing can be copied. Threads: any, one at a time; blocks on the files.
 * Return: 0; -errno, with the load's error set and no copy left.
 */
int dmn_sent_files_place(struct dmn_sent_files *s, struct dmn_load *l, const char *state_dir);
/** dmn_sent_files_deinit() - closes the descriptors. A second call does nothing. */
void dmn_sent_files_deinit(struct dmn_sent_files *s);

/* Loop thread; the disk's thread removes. */

/** dmn_copy_leave() - a model or load that used @path is gone: removes its folder if it is a copy
 * that is not saved, and nothing else uses it. */
void dmn_copy_leave(const struct dmn_models *models, const char *path);
/** dmn_copy_forget() - removes the folder of @path if it is a saved copy. */
void dmn_copy_forget(const struct dmn_models *models, const char *path);
/** dmn_copies_clean() - removes the copies that an earlier process did not save, or saved and then
 * replaced. @config: with the saved models. At a start; blocks. */
void dmn_copies_clean(const struct dmn_models *models, const struct dmn_config *config);
