/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/saved.h - models that "pipectl models load --save" keeps across restarts
 *
 * They are in the state directory and not in the configuration, which is its author's. Each start
 * and reload reads them as if they stood behind the configuration; a configured model of the same
 * name takes precedence.
 *
 * A list that cannot be used is not an empty one. A reload then changes nothing, a check fails, and
 * no call changes the list; a start serves the rest, degraded. Only a start sets a damaged list
 * aside, once it has locked the directory. Threads: the loop thread.
 */
#pragma once

#include "daemon/config/config.h"
#include "daemon/config/state_file.h"

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
