/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/common/weight_files.h - files beside a model's file that hold weights ("external data")
 *
 * The reader of the model asks for a file by the name that the model gives it; a file is opened and
 * mapped once. All of them lie beneath the model's folder: no absolute path, no "..", no symbolic
 * link that leads out, nothing but regular files. Descriptors are not kept, because a model may
 * have a file for each of thousands of weights; instead every file is opened once more at the end,
 * and must then be the same one, unchanged.
 *
 * Invariant: the bytes of all mappings together are at most bytes_max.
 */
#pragma once

#include <stddef.h>

#include "model/common/private.h"

#define MDL_DATA_FILES_MAX 4096u

struct mdl_data_file_in {
    char *name; /* owned; as the model gives it */
    struct mdl_map_range map;
    struct mdl_data_file file; /* path: owned */
};

struct mdl_data_files {
    const char *model_path; /* borrowed; set by the caller, as the limit: */
    size_t bytes_max;       /* of all files together */
    size_t bytes;
    struct mdl_data_file_in *list; /* owned; sorted by name */
    size_t count, cap;
    size_t last;   /* index of what was found last */
    int folder_fd; /* of the model's folder ... */
    int target_fd; /* ... and where the model's file is a link, of the folder of its target; -1 */
    char *target;  /* owned; the path of that target, or NULL */
};

#define MDL_DATA_FILES_NULL ((struct mdl_data_files){.folder_fd = -1, .target_fd = -1})

/** mdl_data_files_deinit() - unmaps what mdl_data_files_move() has not taken. */
void mdl_data_files_deinit(struct mdl_data_files *d);

/**
 * mdl_data_file_map() - the mapping of the file @name, which is made if need be
 * @ret: borrowed; @ret->data is NULL for an empty file. Blocks on the file; allocates.
 * Return: 0, -errno, -EXDEV (leads out of the folder), -EISDIR, -EINVAL (not a regular file),
 * -E2BIG (too many files or bytes), -ENOMEM; with @ret_error.
 */
int mdl_data_file_map(struct mdl_data_files *d, const char *name, char ret_error[MDL_ERROR_MAX],
                      struct mdl_map_range *ret);

/** mdl_data_file_again() - opens file @i of the list once more. Return: 0, *ret_fd is the caller's;
 * -EBADMSG (it is another file, or changed since it was mapped); -errno; with @ret_error. */
int mdl_data_file_again(const struct mdl_data_files *d, size_t i, char ret_error[MDL_ERROR_MAX],
                        int *ret_fd);

/** mdl_data_files_move() - gives the mappings to @m->private->map, which exists, and lists the
 * files in @m. Return: 0, -ENOMEM. */
int mdl_data_files_move(struct mdl_data_files *d, struct mdl_model *m);
