/* SPDX-License-Identifier: Apache-2.0 */
/** daemon/adapt/told.h - what adapt/ did, for the history and the log. Threads: the loop thread. */
#pragma once

#include "daemon/adapt/adapter_private.h"

struct dmn_adapt_told {
    enum tun_cause cause;
    struct dmn_origin origin;
    enum dmn_event_outcome outcome;
    const char *detail, *before, *after;
    double fps_before, gain, duration_ms;
    const struct dmn_turns_result *turns; /* that led to it; NULL: none */
    struct dmn_decided *decided;          /* gets another reference; NULL: none */
};
/** dmn_adapt_tell() - writes history and log. Return: the event, borrowed until the next one; NULL:
 * out of memory. */
struct dmn_history_event *dmn_adapt_tell(struct dmn_model *m, const struct dmn_adapt_told *t);
/** dmn_adapt_detail() - writes one sentence about a decision to @ret. */
void dmn_adapt_detail(const struct tun_record *r, const struct tun_decision *d, char *ret,
                      size_t bytes);
