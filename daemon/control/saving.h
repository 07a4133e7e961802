/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/control/saving.h - the end of a Load: its reply, and what it keeps across restarts
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdbool.h>

#include "daemon/control/methods.h"
#include "daemon/models/models.h"

/** dmn_load_reply() - answers Load @c: @m serves. @copied: from a copy of the client's file.
 * @saves: first has it kept across restarts. */
void dmn_load_reply(struct dmn_call *c, struct dmn_model *m, bool copied, bool saves);
/**
 * dmn_save_loaded() - keeps a model that is loaded from the file that Load @c names
 *
 * If its files have changed since, a hot swap loads them first. Return: false: @c does not ask for
 * that; true: @c is answered, or will be.
 */
bool dmn_save_loaded(struct dmn_call *c, const struct dmn_load_source *s);
