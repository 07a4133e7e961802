/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/config/saved.h - models that "pipectl models load --save" keeps across restarts
 *
 * They are in the state directory and not in the configuration, which is its author's. Each start
 * and reload reads them as if they stood behind the configuration; a configured model of the same
 * name takes precedence. Threads: the loop thread; blocks on the file.
 */
#pragma once

#include "daemon/config/config.h"

/**
 * dmn_saved_merge() - adds the saved models to a configuration
 * @folder: the state directory; NULL: there is none. A file that makes no sense counts as missing.
 * @ret_note: DMN_CONFIG_ERROR_MAX; why the file was left out, or "". Return: 0, -ENOMEM.
 */
int dmn_saved_merge(struct dmn_config *c, const char *folder, char *ret_note);

/** dmn_saved_add() - saves a model, in place of a saved one of its name. @plan, @shapes: or "".
 * Return: 0; -ENOENT: no state directory; -EBUSY: another daemon keeps it; -errno. */
int dmn_saved_add(const char *folder, const char *name, const char *path, const char *plan,
                  const char *shapes);
/** dmn_saved_remove() - Return: 0; DMN_SAVED_E_NONE: no such model is saved; -EBUSY: as above;
 * -errno. */
int dmn_saved_remove(const char *folder, const char *name);
enum { DMN_SAVED_E_NONE = 1 };
