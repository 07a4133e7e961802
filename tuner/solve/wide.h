/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/wide.h - whether wide stops are in time, for tuner/solve/admit.h, which says why.
 * Used by that folder alone. */
#pragma once

#include "tuner/solve/tasks.h"

struct tun_late {
    const struct tun_task *task; /* borrowed from the row; NULL: all are in time */
    bool waits;                  /* it would be in time if seats did not idle */
    size_t model, unit;          /* whose unit is the longest then; else who takes most */
};

/** tun_row_check() - sets R of a row's tasks. @row: it may have none. @ret: the first that is late.
 */
void tun_row_check(struct tun_seat *row, struct tun_late *ret);
