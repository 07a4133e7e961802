/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/frame_stats.h - statistics of one model's clients' frames, beside the counts of
 * struct dmn_model_stats
 *
 * Written by clients.c and submit.c. A hot swap starts with new ones.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stdint.h>

#include "daemon/frames/histogram.h"
#include "daemon/frames/no_result.h"
#include "ipc/protocol.h"

#define DMN_LATENCIES 1024u /* answers for the percentiles */

/* How a frame ended: it is being answered. */
struct dmn_frame_end {
    enum ipc_status status;
    enum ipc_policy policy; /* of its stream */
    enum dmn_no_result why; /* NONE: status is OK */
    /* of a computed frame */
    uint64_t arrival_ns, done_ns;
    uint64_t queue_ns, compute_ns; /* arrival to start, start to done */
    uint64_t prepare_ns;           /* beside the pipeline, part of queue_ns; 0: it was not */
};

struct dmn_client_stats {
    uint64_t by_status[IPC_STATUS_COUNT];
    uint64_t by_policy[IPC_POLICY_COUNT][IPC_STATUS_COUNT];
    uint64_t by_reason[DMN_NO_RESULT_COUNT];
    struct dmn_histogram latency, queue, compute; /* of computed frames */
    struct dmn_histogram preparing;               /* of those prepared beside the pipeline */
    float latency_ms[DMN_LATENCIES];              /* arrival to done, of computed frames; a ring */
    uint64_t latency_count;
    double latency_sum_s;
    double service_ewma_ns; /* start to done, moving average; 0: none yet */
    /* converting clients' images: by teams, and by the thread of preparing.h */
    uint64_t image_ns, image_beside_ns;
};

/** dmn_client_stats_answered() - counts an answered frame. Its times count if it was computed, so
 * every histogram but `preparing` counts as many as by_status[IPC_OK]. */
void dmn_client_stats_answered(struct dmn_client_stats *s, const struct dmn_frame_end *e);
/** dmn_client_stats_served() - adds the time that the pipeline took for a frame. */
void dmn_client_stats_served(struct dmn_client_stats *s, uint64_t service_ns);
/** dmn_client_stats_latency() - p50, p95, p99 and max of the newest answers, in ms; zeros before
 * the first. */
void dmn_client_stats_latency(const struct dmn_client_stats *s, double ret[4]);
