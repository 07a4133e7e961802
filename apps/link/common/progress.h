/* SPDX-License-Identifier: Apache-2.0 */
/**
 * apps/link/common/progress.h - do answers still come?
 *
 * Something is due since the last answer, or since it was asked for if nothing was due before. It
 * is stuck when that is longer ago than @least_ns and PROGRESS_TIMES the longest usual wait; while
 * nothing has ever come, the usual wait counts as PROGRESS_FIRST_NS.
 *
 * Pure: no clock. Threads: one.
 */
#pragma once

#include "base/base.h"

#define PROGRESS_TIMES 4u
#define PROGRESS_FIRST_NS 2250000000ull
#define PROGRESS_FADE 8u

/* Starts as zeros. */
struct lnk_progress {
    uint32_t due;
    uint64_t since_ns, usual_ns; /* usual_ns: the longest wait, of which old ones fade; 0: none */
};

/** lnk_progress_due() - one more answer is due. */
static inline void lnk_progress_due(struct lnk_progress *p, uint64_t now_ns)
{
    if (p->due++ == 0) {
        p->since_ns = now_ns;
    }
}

/** lnk_progress_came() - one has come. */
static inline void lnk_progress_came(struct lnk_progress *p, uint64_t now_ns)
{
    uint64_t wait_ns = now_ns - base_min(now_ns, p->since_ns);

    if (p->due > 0) {
        p->due--;
        p->usual_ns = base_max(wait_ns, p->usual_ns - p->usual_ns / PROGRESS_FADE);
        p->usual_ns = base_max(p->usual_ns, 1ull);
        p->since_ns = now_ns;
    }
}

/** lnk_progress_excuse() - the time until now does not count: nobody looked. */
static inline void lnk_progress_excuse(struct lnk_progress *p, uint64_t now_ns)
{
    p->since_ns = base_max(p->since_ns, now_ns);
}

/** lnk_progress_stuck() - Return: answers are due, and have not come for too long. */
static inline bool lnk_progress_stuck(const struct lnk_progress *p, uint64_t now_ns,
                                      uint64_t least_ns)
{
    uint64_t usual_ns = p->usual_ns ? p->usual_ns : PROGRESS_FIRST_NS;

    return p->due > 0 && now_ns > p->since_ns &&
           now_ns - p->since_ns > least_ns + PROGRESS_TIMES * usual_ns;
}
