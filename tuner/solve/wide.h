/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/wide.h - whether wide stops are in time, for tuner/solve/admit.h, which says why. Used
 * by that folder alone. */
#pragma once

#include "tuner/solve/admit.h"
#include "tuner/solve/tasks.h"

/** tun_bench_check() - sets R of a bench's tasks, and the first refusal. @bench: no tasks: none. */
void tun_bench_check(struct tun_seat *bench, struct tun_answer *io_answer);
