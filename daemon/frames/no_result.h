/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/no_result.h - why a frame is answered without a result: one table of status, text
 * for its client, and name for the metrics
 *
 * Constant; any thread.
 */
#pragma once

#include "ipc/protocol.h"

enum dmn_no_result {
    DMN_NO_RESULT_NONE,
    /* the rules that all servers of the protocol share: their texts tell the figures */
    DMN_NO_RESULT_INVALID,
    DMN_NO_RESULT_CREDIT,
    DMN_NO_RESULT_MEMORY, /* limits.inline_mib, limits.inline_total_mib */
    DMN_NO_RESULT_POOL_LOST,
    /* the policy of its stream */
    DMN_NO_RESULT_FULL,
    DMN_NO_RESULT_NEWER,
    /* its deadline, by where the frame was */
    DMN_NO_RESULT_LATE_ARRIVED,
    DMN_NO_RESULT_LATE_PREPARING,
    DMN_NO_RESULT_LATE_WAITING,
    DMN_NO_RESULT_LATE_COMPUTING,
    DMN_NO_RESULT_CANCELLED,
    DMN_NO_RESULT_UNLOADED,
    DMN_NO_RESULT_TOO_LARGE,
    DMN_NO_RESULT_STOPPING,
    DMN_NO_RESULT_STOPPED,
    DMN_NO_RESULT_NO_THREAD,
    DMN_NO_RESULT_NO_MEMORY,
    DMN_NO_RESULT_COUNT
};

struct dmn_no_result_row {
    const char *name;       /* for metrics */
    enum ipc_status status; /* goes with the text */
    const char *text;       /* for the client; NULL: whoever refuses writes it */
};
extern const struct dmn_no_result_row dmn_no_results[DMN_NO_RESULT_COUNT];
