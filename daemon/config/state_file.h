/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/state_file.h - the files of the state directory
 *
 * One table lists all of them; a test compares FILES of piped(8) with it. A file is JSON; its
 * version is in the file or only in its name. A write goes to NAME.new, which then replaces the
 * file.
 *
 * A file that is too large, unreadable or of another version counts as missing: its owner logs that
 * and learns again. Nothing here logs.
 *
 * Threads: any, one at a time for each file.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DMN_STATE_PATH_MAX 4096u

enum dmn_state_file {
    DMN_STATE_MODEL,   /* what was learned about a model, for each state of the machine */
    DMN_STATE_CHOICE,  /* the primitives that were chosen for a model */
    DMN_STATE_RANGES,  /* by which a model was quantised */
    DMN_STATE_BORDERS, /* what examples said about a model's borders */
    DMN_STATE_PROFILE, /* of the cores */
    DMN_STATE_SAVED,   /* models to serve besides those of the configuration */
    DMN_STATE_FILE_COUNT,
};

struct dmn_state_row {
    const char *form;        /* of the name; HASH (its identity) and NAME stand for the model's */
    const char *version_key; /* NULL: the version is only in the name */
    int version;
    size_t bytes_max;
    size_t json_flags; /* of jansson, for writing */
    bool synced;       /* on the disk when the write returns; losing another file costs little */
};
extern const struct dmn_state_row dmn_state_rows[DMN_STATE_FILE_COUNT];

enum {
    DMN_STATE_E_BAD = 1,   /* too large, or not a JSON object */
    DMN_STATE_E_OTHER = 2, /* has another version */
    DMN_STATE_E_TAKEN = 3, /* not written: another daemon keeps this directory (state_lock.h) */
};

/**
 * dmn_state_file_path() - the path of a state file
 *
 * @folder: the state directory; NULL: nothing is saved
 * @identity, @name: of the model, where the name's form has them; else unused
 *
 * Return: true with @ret set; false without a folder, or if the path is too long.
 */
bool dmn_state_file_path(enum dmn_state_file file, const char *folder, const char *identity,
                         const char *name, char ret[DMN_STATE_PATH_MAX]);
/** dmn_state_file_read() - reads a file; blocks. @ret: new reference. Return: 0; DMN_STATE_E_BAD;
 * DMN_STATE_E_OTHER; -ENOENT: no such file; -errno. */
int dmn_state_file_read(enum dmn_state_file file, const char *path, json_t **ret);
/**
 * dmn_state_file_write() - writes @root with the version of its row
 *
 * @root: reference taken; NULL gives -ENOMEM. Blocks, and waits for the disk if the row is synced.
 * Return: 0; DMN_STATE_E_TAKEN; -errno. The last two leave the previous file unchanged.
 */
int dmn_state_file_write(enum dmn_state_file file, const char *path, json_t *root);
