/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/no_result.h - why a frame is answered without a result: one table of status, text
 * for its client, and name for the metrics
 *
 * Pure functions; any thread.
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

/** dmn_no_result_name() - for metrics. Return: static. */
const char *dmn_no_result_name(enum dmn_no_result why);
/** dmn_no_result_text() - for the client. Return: static; NULL: whoever refuses writes it. */
const char *dmn_no_result_text(enum dmn_no_result why);
/** dmn_no_result_status() - Return: what goes with dmn_no_result_text(). */
enum ipc_status dmn_no_result_status(enum dmn_no_result why);
