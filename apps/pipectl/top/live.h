/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/top/live.h - pipectl top in a terminal, until a key or signal ends it */
#pragma once

#include "apps/pipectl/common/pipectl.h"

#define TOP_EVENTS 20 /* decisions that are asked for */

/** top_live() - @ascii: the terminal shows nothing else. Return: an exit code. A signal that ends
 * it ends the program, too. */
int top_live(const struct ctl *ctl, const struct ctl_options *o, bool ascii);
