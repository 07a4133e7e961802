/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/state_file.h - the files of the state directory
 *
 * One table lists all of them; a test compares FILES of piped(8) with it. A file is JSON with its
 * version, the identity of its model if its name has one, and a checksum. A write goes to NAME.new,
 * is brought to the disk, and then replaces the file, so a loss of power leaves the previous file
 * or the new one.
 *
 * A file that is damaged in any way is never used: it is renamed to NAME.damaged, one line of the
 * log says why and what happens now, and its owner goes on as if there were none. Of the list of
 * saved models this is so at a start alone (saved.c). A file of another version is ignored, and
 * that is logged, too. Of some files the format before checksums is still read, once: the file is
 * then written in the present format.
 *
 * Two daemons that keep what they learn in one directory would undo each other's work. The first
 * locks the directory for as long as it runs. A second one serves, reads what is kept, and writes
 * nothing: a write gives -EBUSY. There is one state directory in a process, so the lock is the
 * process's.
 *
 * Threads: any, one at a time for each file; where it says so, the loop thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/service/work.h"

struct dmn_config;
struct dmn_config_model;

#define DMN_STATE_PATH_MAX 4096u

enum dmn_state_file {
    DMN_STATE_MODEL,   /* what was learned about a model, for each state of the machine */
    DMN_STATE_CHOICE,  /* the primitives that were chosen for a model */
    DMN_STATE_RANGES,  /* by which a model was quantised */
    DMN_STATE_PROFILE, /* of the cores */
    DMN_STATE_SAVED,   /* models to serve besides those of the configuration */
    DMN_STATE_FILE_COUNT,
};

struct dmn_state_row {
    const char *form;   /* of the name; HASH (its identity) and NAME stand for the model's */
    const char *former; /* the form before checksums, which is read once; NULL: not read */
    int version;
    size_t bytes_max;
    size_t json_flags; /* of jansson, for writing */
    const char *then;  /* for people: what happens without the file */
};
extern const struct dmn_state_row dmn_state_rows[DMN_STATE_FILE_COUNT];

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
/**
 * dmn_state_file_read() - reads a file; blocks
 *
 * @identity: of the model, which the file must name; NULL: unless the name's form has HASH
 * @ret: new reference
 *
 * Return: 0; -ENOENT: there is none; DMN_STATE_E_BAD: it is not used, which was logged; -errno:
 * it cannot be read, which was logged.
 */
int dmn_state_file_read(enum dmn_state_file file, const char *path, const char *identity,
                        json_t **ret);
enum { DMN_STATE_E_BAD = 1 };
/**
 * dmn_state_file_look() - the same of a file without identity, but renames, writes and logs nothing
 *
 * @ret: new reference. @ret_why: why it is not 0, static or as strerror(). Return: as above.
 */
int dmn_state_file_look(enum dmn_state_file file, const char *path, json_t **ret,
                        const char **ret_why);
/**
 * dmn_state_file_write() - writes @root with version, identity and checksum
 *
 * @identity: as above. @root: reference taken; NULL gives -ENOMEM. Blocks, and waits for the disk.
 * Return: 0; -EBUSY: another daemon keeps this directory; -errno. Either leaves the
 * previous file unchanged.
 */
int dmn_state_file_write(enum dmn_state_file file, const char *path, const char *identity,
                         json_t *root);
/** dmn_state_file_remove() - removes a file, and its former one; waits for the disk. Return: 0,
 * also if there was none; -EBUSY: as above; -errno. */
int dmn_state_file_remove(enum dmn_state_file file, const char *path);

/* Who waits is told when the file would survive a loss of power. @error: 0; -errno: the previous
 * file is still there. */
typedef void (*dmn_state_kept_fn)(void *ctx, int error);
struct dmn_state_kept {
    dmn_state_kept_fn fn; /* on the loop thread, once; NULL: nobody waits */
    void *ctx;
};

/** dmn_state_put() - writes a file whose name has no HASH, on the disk's thread, in the order of
 * the calls. A failure is logged, too. Threads: the loop thread. @disk: NULL: here and now. @root:
 * reference taken, and no other may be left; NULL: fails with -ENOMEM. */
void dmn_state_put(struct dmn_work *disk, enum dmn_state_file file, const char *path, json_t *root,
                   struct dmn_state_kept kept);
/** dmn_state_change() - calls @change on the disk's thread likewise; nothing is logged. @with:
 * reference taken, and passed on to @change. */
void dmn_state_change(struct dmn_work *disk, const char *path,
                      int (*change)(const char *path, json_t *with), json_t *with,
                      struct dmn_state_kept kept);
/** dmn_state_drop() - removes a file, as dmn_state_put() writes one. */
void dmn_state_drop(struct dmn_work *disk, enum dmn_state_file file, const char *path,
                    struct dmn_state_kept kept);

/**
 * dmn_state_lock() - locks the directory, or tries again; also notices that the lock's file was
 * removed. Threads: the loop thread.
 *
 * @ret_holder: the process that keeps it, with -EADDRINUSE; 0: unknown.
 *
 * Return: 0; -EADDRINUSE: another daemon keeps it, so nothing is written from now on; -errno: it
 * cannot be locked, and files are written without a lock.
 */
int dmn_state_lock(const char *folder, pid_t *ret_holder);
/** dmn_state_unlock() - ends the lock, if there is one. */
void dmn_state_unlock(void);
/** dmn_state_taken() - Return: another daemon keeps the directory. */
bool dmn_state_taken(void);
/** dmn_state_untold() - Return: a write failed by @error, and the log does not know why yet: that
 * another daemon keeps the directory was said once. */
bool dmn_state_untold(int error);
/** dmn_state_why() - Return: why a file was not kept, for people; static, or as strerror(). @error:
 * -ENOENT: no state directory; -EBUSY: another daemon keeps it; -EBADMSG: the present file is
 * damaged; -errno. */
const char *dmn_state_why(int error);

#define DMN_SEAL_KEY "checksum"
/** dmn_seal_json() - dumps an object with its seal. @flags: of jansson. @root: a non-empty object,
 * borrowed. Return: owned by the caller (free); NULL: out of memory. */
char *dmn_seal_json(const json_t *root, size_t flags);

/* ---- saved.c: models that "pipectl models load --save" keeps across restarts. Threads: the loop
 * thread. ---- */

/**
 * dmn_saved_merge() - adds the saved models to a configuration
 * @folder: the state directory; NULL: there is none. Blocks on the file, and does not change it.
 * Return: 0, with c->saved_error set if the list cannot be used; -ENOMEM.
 */
int dmn_saved_merge(struct dmn_config *c, const char *folder);
/** dmn_saved_tidy() - sets a damaged list aside; writes one of the former format again. Logs. */
void dmn_saved_tidy(const char *folder);

/** dmn_saved_add() - saves a model by its name, path, plan and shapes, in place of a saved one
 * of its name. @kept: must be given; its error is 0; -ENOENT: no state directory; -EBADMSG: the
 * present list is damaged, and stays; -errno of the file. The disk's thread writes. */
void dmn_saved_add(struct dmn_work *disk, const char *folder, const struct dmn_config_model *m,
                   struct dmn_state_kept kept);
/** dmn_saved_remove() - the same; the error may be DMN_SAVED_E_NONE: no such model is saved. */
void dmn_saved_remove(struct dmn_work *disk, const char *folder, const char *name,
                      struct dmn_state_kept kept);
enum { DMN_SAVED_E_NONE = 1 };
