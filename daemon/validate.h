/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/validate.h - what a start demands of a configuration, besides what reading it demands
 *
 * A start, a reload and `piped --check-config` judge by these functions, and each loads the models:
 * so a check or a reload succeeds if and only if a restart would serve all of the configuration. A
 * start differs in one thing: where a model cannot be served, it serves the others and is degraded.
 *
 * Every text is "FILE:LINE: KEY: VALUE: reason", DMN_CONFIG_ERROR_MAX bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/config/config.h"
#include "daemon/machine/machine.h"
#include "daemon/models/loading.h"

/**
 * dmn_validate() - judges the cores and the group of the sockets
 *
 * @on: its configuration is judged, and its EPs are read. @binds: the daemon makes a socket itself.
 * @ret_group: of the sockets.
 *
 * Threads: any that owns @on; blocks on sysfs and the user database. Return: 0; -errno, with
 * @ret_error.
 */
int dmn_validate(struct dmn_machine *on, bool binds, char *ret_error, gid_t *ret_group);
/** dmn_validate_load() - loads a configured model, and judges its plan. @ret_key: on failure, as
 * for dmn_validate_fault(). Threads: any that owns @l; blocks. Return: 0; -errno, with l->error. */
int dmn_validate_load(const struct dmn_config_model *m, const struct pl_ep_set *eps,
                      struct dmn_load *l, const char **ret_key);
/** dmn_validate_plan() - judges a configured plan for a model of @units units. Threads: any.
 * Return: 0; -EINVAL, with @ret_error. */
int dmn_validate_plan(const struct dmn_config *c, const struct dmn_config_model *m,
                      const struct pl_ep_set *eps, size_t units, char *ret_error,
                      struct pl_plan *ret);
/** dmn_validate_fault() - writes why a model cannot be served. @key: "path", "plan" or
 * "calibration". @why: the reason; it may name the value itself. */
void dmn_validate_fault(const struct dmn_config *c, const struct dmn_config_model *m,
                        const char *key, const char *why, char *ret_error);
/** dmn_validate_doubt() - writes what is allowed but hardly meant; "" if there is nothing. */
void dmn_validate_doubt(const struct dmn_config *c, char *ret_text);
