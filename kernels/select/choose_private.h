/* SPDX-License-Identifier: Apache-2.0 */
/** kernels/select/choose_private.h - a choice made of times; for choose*.c only */
#pragma once

#include "kernels/select/choose.h"

/** krn_choose_times() - the choice that runs t->times[@times[0..@count - 1]], in order of ops.
 * Return: 0, -ENOMEM. */
int krn_choose_times(const struct krn_times *t, const size_t *times, size_t count,
                     struct krn_chosen *ret);
