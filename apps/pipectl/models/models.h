/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/models/models.h - the parts of pipectl models: files fetched, and files sent */
#pragma once

#include "base/json_text.h"
#include "ipc/control/control_client.h"

struct ctl;
struct ctl_options;

/* ---- fetch.c: gets files of known models ---- */

/** ctl_models_fetch() - @name: NULL: list the catalogue. Return: an exit code. All files of a model
 * are there, or none of them. */
int ctl_models_fetch(const struct ctl *ctl, const struct ctl_options *o, const char *name);

/*
 * ---- catalogue.c: the models that are known ----
 *
 * Rows come from the catalogue that is installed, from /etc/piped/models.json.d/NAME.json in the
 * order of their names, and from one more file or folder. A row replaces an earlier one of the same
 * name.
 */

/* A file of a row, as the catalogue describes it. Texts are borrowed from the row. */
struct ctl_source {
    const char *url;    /* https://, http:// or file:// */
    const char *sha256; /* 64 hex digits, lower case */
    uint64_t bytes;     /* at least 1 */
};

/** ctl_catalogue() - reads all rows. @more: a further file or folder, or NULL. Return: a list of
 * rows that were checked, each with "from", its file; a new reference; NULL: a file is wrong, as
 * was printed. */
json_t *ctl_catalogue(const char *more);

/** ctl_catalogue_find() - Return: the row, borrowed; NULL: there is none, as was printed. */
const json_t *ctl_catalogue_find(const json_t *rows, const char *name);

/** ctl_source() - the file that @at describes: a row, or its "labels". */
struct ctl_source ctl_source(const json_t *at);

/* ---- download.c: gets a file by the program curl, and lets only the right one through ---- */

/**
 * ctl_download() - writes the file at a URL to @fd, and compares its size and SHA-256
 *
 * Redirects may lead to the URL's own scheme, and from http to https. No byte more than the file's
 * is written. On a terminal, a line on stderr shows how far it is. @name: the file's, in messages.
 * SIGINT, SIGTERM and SIGHUP end it: see ctl_download_signals(). Return: an exit code; the reason
 * was printed, and what @fd has is of no use.
 */
int ctl_download(const struct ctl_source *source, const char *name, int fd);

/** ctl_is_source() - Return: the file @name in @folder is there, and is what the source says. */
bool ctl_is_source(const struct ctl_source *source, int folder, const char *name);

/** ctl_download_signals() - from now on these signals only end a download, so that its caller can
 * clean up. ctl_download_ended() - Return: one of them came. */
void ctl_download_signals(void);
bool ctl_download_ended(void);

/* ---- files.c: the files of a model, open, to be sent to a daemon that may not read them ---- */

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

/* ---- onnx_files.c ---- */

/**
 * ctl_onnx_files() - finds the names of the files that an ONNX file keeps its weights in
 *
 * Follows protobuf's lengths and reads nothing of the weights. @fd: any file; one that is not ONNX
 * names nothing. @found: called with each name, perhaps several times with the same; a value but 0
 * ends the search and is returned. Return: 0; -errno of a read.
 */
int ctl_onnx_files(int fd, int (*found)(void *ctx, const char *name), void *ctx);
