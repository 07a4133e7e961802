/* SPDX-License-Identifier: Apache-2.0 */
/** apps/pipectl/top/live.h - pipectl top in a terminal, until a key or signal ends it */
#pragma once

#include "apps/pipectl/common/pipectl.h"

struct top_options {
    const char *model; /* to show first; NULL: the first one */
    double interval_s;
    bool once, ascii;
};

#define TOP_EVENTS 20 /* decisions that are asked for */

/** top_live() - Return: an exit code. A signal that ends it ends the program, too. */
int top_live(const struct ctl *ctl, const struct top_options *o);
