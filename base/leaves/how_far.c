/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leaves/how_far.h"

static _Thread_local struct mdl_progress *kept;

struct mdl_progress *mdl_progress_by(struct mdl_progress *p)
{
    struct mdl_progress *before = kept;

    kept = p;
    return before;
}

void mdl_progress(const char *what, size_t done, size_t of)
{
    if (kept) {
        atomic_store_explicit(&kept->what, what, memory_order_relaxed);
        atomic_store_explicit(&kept->done, (uint32_t)done, memory_order_relaxed);
        atomic_store_explicit(&kept->of, (uint32_t)of, memory_order_relaxed);
    }
}
