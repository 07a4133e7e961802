/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/choose_private.h - how choices are kept; for daemon/choose*.c only
 */
#pragma once

#include "daemon/choose.h"

/** dmn_choose_read() - what is kept for this model, machine, libraries and table of primitives. A
 * file that is none of ours is said in c->note. Return: 0; -ENOENT: nothing that fits. */
int dmn_choose_read(struct dmn_choose *c, const struct mdl_model *m, const char *name);
/**
 * dmn_choose_agree() - the fastest choice, INEXACT rows and all, whose classes agree with the exact
 * choice's for c->agreement_min of c->examples; c->agreement says how many did
 * Return: 0; negative with c->note where the set is unfit.
 */
int dmn_choose_agree(struct dmn_choose *c, const struct mdl_model *m, const struct krn_times *t,
                     struct krn_chosen *ret);
/** dmn_choose_write() - keeps it; where that fails, c->note says so. Blocks on the file. */
void dmn_choose_write(struct dmn_choose *c, const struct mdl_model *m, const char *name);
