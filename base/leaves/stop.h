/* SPDX-License-Identifier: Apache-2.0 */
/**
 * base/leaves/stop.h - calls off the work of a load
 *
 * A load is many steps in several rooms: reading, hashing, folding, packing, measuring. Each asks
 * between two pieces of its work whether it is still wanted, and ends with -ECANCELED if not. Who
 * begins the work says, for its own thread, which flag decides; mdl_share() hands it on.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

/** mdl_stop_by() - what calls off the work of this thread: true: end early; borrowed until the next
 * call; NULL: nothing does. Return: what did until now. */
const _Atomic bool *mdl_stop_by(const _Atomic bool *stop);
/** mdl_stopped() - Return: the work of this thread was called off. Never blocks. */
bool mdl_stopped(void);
