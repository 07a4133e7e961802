/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/common/progress.h"

#include "base/base.h"

#define FADE 8u

void lnk_progress_due(struct lnk_progress *p, uint64_t now_ns)
{
    if (p->due++ == 0) {
        p->since_ns = now_ns;
    }
}

void lnk_progress_came(struct lnk_progress *p, uint64_t now_ns)
{
    uint64_t wait_ns = now_ns - base_min(now_ns, p->since_ns);

    if (p->due > 0) {
        p->due--;
        p->usual_ns = base_max(wait_ns, p->usual_ns - p->usual_ns / FADE);
        p->usual_ns = base_max(p->usual_ns, 1ull);
        p->since_ns = now_ns;
    }
}

void lnk_progress_excuse(struct lnk_progress *p, uint64_t now_ns)
{
    p->since_ns = base_max(p->since_ns, now_ns);
}

bool lnk_progress_stuck(const struct lnk_progress *p, uint64_t now_ns, uint64_t least_ns)
{
    uint64_t usual_ns = p->usual_ns ? p->usual_ns : PROGRESS_FIRST_NS;

    return p->due > 0 && now_ns > p->since_ns &&
           now_ns - p->since_ns > least_ns + PROGRESS_TIMES * usual_ns;
}
