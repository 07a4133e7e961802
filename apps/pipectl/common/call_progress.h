/* SPDX-License-Identifier: Apache-2.0 */
/**
 * call_progress.h - one line on a terminal that says how far a call is that takes long
 *
 * While a call waits for its answer, a second connection is subscribed to the daemon's events. Each
 * that tells of the call's model overwrites the line on stderr. Where stderr is no terminal there
 * is no second connection and no line. What fails here is not told: the call itself says it.
 */
#pragma once

#include <jansson.h>

#include "apps/pipectl/common/pipectl.h"

struct ctl_progress;

/** ctl_progress_new() - @parameters: of the call; they name its model. Return: NULL: nothing is
 * shown. ctl_progress_free() takes the line away, and takes NULL. */
struct ctl_progress *ctl_progress_new(const struct ctl *ctl, const json_t *parameters);
struct ctl_progress *ctl_progress_free(struct ctl_progress *p);
/** ctl_progress_fd() - Return: for poll(2): when it is readable, ctl_progress_show(); -1: never. */
int ctl_progress_fd(const struct ctl_progress *p);
void ctl_progress_show(struct ctl_progress *p);

/* ---- the line on stderr that is written over again and again ---- */

/** ctl_line_show() - overwrites the line. @text: what a terminal must not get becomes '?', and what
 * does not fit is left out. Nothing where stderr is no terminal. */
void ctl_line_show(char *text);
/** ctl_line_wipe() - takes the line away; nothing if there is none. */
void ctl_line_wipe(void);
