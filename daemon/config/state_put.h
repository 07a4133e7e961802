/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/state_put.h - writes state files without blocking the loop
 *
 * The disk's thread writes them, in the order of the calls. Whoever waits is
 * told when the file would survive a loss of power. Failures are logged, too. Threads: the loop
 * thread; nothing blocks unless there is no such thread.
 */
#pragma once

#include "daemon/config/state_file.h"
#include "daemon/service/work.h"

/* @error: 0; -errno: the previous file is still there. */
typedef void (*dmn_state_kept_fn)(void *ctx, int error);
struct dmn_state_kept {
    dmn_state_kept_fn fn; /* on the loop thread, once; NULL: nobody waits */
    void *ctx;
};

/** dmn_state_put() - writes a file whose name has no HASH. @disk: NULL: here and now. @root:
 * reference taken, and no other may be left; NULL: fails with -ENOMEM. */
void dmn_state_put(struct dmn_work *disk, enum dmn_state_file file, const char *path, json_t *root,
                   struct dmn_state_kept kept);
/** dmn_state_drop() - removes a file. */
void dmn_state_drop(struct dmn_work *disk, enum dmn_state_file file, const char *path,
                    struct dmn_state_kept kept);
