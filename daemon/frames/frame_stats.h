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

#include "ipc/protocol.h"

#define DMN_LATENCIES 1024u /* answers for the percentiles */

struct dmn_client_stats {
    uint64_t by_status[IPC_STATUS_COUNT];
    float latency_ms[DMN_LATENCIES]; /* arrival to done, of computed frames; a ring */
    uint64_t latency_count;
    double latency_sum_s;
    double service_ewma_ns; /* start to done, moving average; 0: none yet */
};

/** dmn_client_stats_answered() - counts a frame answered with @status. The times count if it was
 * computed. */
void dmn_client_stats_answered(struct dmn_client_stats *s, enum ipc_status status,
                               uint64_t arrival_ns, uint64_t done_ns);
/** dmn_client_stats_served() - adds the time that the pipeline took for a frame. */
void dmn_client_stats_served(struct dmn_client_stats *s, uint64_t service_ns);
/** dmn_client_stats_latency() - p50, p95, p99 and max of the newest answers, in ms; zeros before
 * the first. */
void dmn_client_stats_latency(const struct dmn_client_stats *s, double ret[4]);
