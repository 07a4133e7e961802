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

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_TIMES 4u
#define PROGRESS_FIRST_NS 2250000000ull

/* Starts as zeros. */
struct lnk_progress {
    uint32_t due;
    uint64_t since_ns, usual_ns; /* usual_ns: the longest wait, of which old ones fade; 0: none */
};

/** lnk_progress_due() - one more answer is due. */
void lnk_progress_due(struct lnk_progress *p, uint64_t now_ns);
/** lnk_progress_came() - one has come. */
void lnk_progress_came(struct lnk_progress *p, uint64_t now_ns);
/** lnk_progress_excuse() - the time until now does not count: nobody looked. */
void lnk_progress_excuse(struct lnk_progress *p, uint64_t now_ns);
/** lnk_progress_stuck() - Return: answers are due, and have not come for too long. */
bool lnk_progress_stuck(const struct lnk_progress *p, uint64_t now_ns, uint64_t least_ns);
