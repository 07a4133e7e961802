/* SPDX-License-Identifier: Apache-2.0 */
/**
 * files.h - the files of a model, open, to be sent to a daemon that may not read
 * them
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "ipc/control/control_client.h"

#define CTL_MODEL_FILES_MAX IPC_CONTROL_FDS_MAX /* go with one call */

struct ctl_model_files {
    int fd[CTL_MODEL_FILES_MAX]; /* owned */
    json_t *names;               /* owned: of the files, in that order; below the model's folder */
    size_t count;
    char why[600]; /* why there are none */
};

/**
 * ctl_model_files_open() - opens a model's file, its sidecar, the files that the sidecar names, and
 * those with its weights
 *
 * @path: absolute. These are looked for beside the file, and if it is a link, beside its target,
 * but never out of these folders. Return: true; false, with @ret->why set and no file open:
 * one of them cannot be read here.
 */
bool ctl_model_files_open(const char *path, struct ctl_model_files *ret);
/** ctl_model_files_close() - a second call does nothing. */
void ctl_model_files_close(struct ctl_model_files *f);

/* onnx_files.c */

/**
 * ctl_onnx_files() - finds the names of the files that an ONNX file keeps its weights in
 *
 * Follows protobuf's lengths and reads nothing of the weights. @fd: any file; one that is not ONNX
 * names nothing. @found: called with each name, perhaps several times with the same; a value but 0
 * ends the search and is returned. Return: 0; -errno of a read.
 */
int ctl_onnx_files(int fd, int (*found)(void *ctx, const char *name), void *ctx);
