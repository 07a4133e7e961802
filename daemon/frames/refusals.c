/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/refusals.h"

#include "base/base.h"

void dmn_refusals_add(struct dmn_refusals *all, const struct dmn_refused_client *r)
{
    struct dmn_refused_client *to = &all->list[0];
    uint64_t count = 0;

    for (size_t i = 0; i < DMN_REFUSALS; i++) {
        struct dmn_refused_client *old = &all->list[i];

        if (old->count && old->pid == r->pid && old->what == r->what && old->status == r->status) {
            count = old->count;
            to = old;
            break;
        }
        if (old->last_ns < to->last_ns) {
            to = old;
        }
    }
    *to = *r;
    to->count = count + 1;
}

const char *dmn_refused_name(enum dmn_refused what)
{
    static const char *const names[] = {"connection", "stream", "pool", "frame"};

    return names[what];
}
