/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leaves/stop.h"

#include <stddef.h>

static _Thread_local const _Atomic bool *stop_by;

const _Atomic bool *mdl_stop_by(const _Atomic bool *stop)
{
    const _Atomic bool *before = stop_by;

    stop_by = stop;
    return before;
}

bool mdl_stopped(void)
{
    return stop_by && atomic_load_explicit(stop_by, memory_order_relaxed);
}
