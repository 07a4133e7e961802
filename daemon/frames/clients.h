/* SPDX-License-Identifier: Apache-2.0 */
/**
 * daemon/frames/clients.h - what this room keeps for one model: its clients' streams, the waiting
 * frames, and statistics of the answers, beside the counts of struct dmn_model_stats
 *
 * Owned by the model as dmn_model.clients, from its start until its pipeline is gone. A hot swap
 * starts with new statistics.
 *
 * How long frames took is counted in fixed buckets, for Prometheus. Their upper bounds are 10 us
 * times 1, 1.6, 2.5, 4, 6.3, 10, ... (five a decade, the R5 series of ISO 3), so a quantile is off
 * by a factor of 1.6 at most. All histograms have the same bounds, and they never change, so those
 * of several models or boards may be added up.
 *
 * Threads: the loop thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/frames/admission.h"
#include "daemon/models/models.h"
#include "ipc/description.h"
#include "ipc/protocol.h"

struct dmn_stream;

/* Why a frame is answered without a result: one table of status, text for its client, and name for
 * the metrics. */
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

#define DMN_BUCKETS 33u /* with a bound; one more for what is longer than all of them */

/* Count and sum are exact. All zeros is an empty one. */
struct dmn_histogram {
    uint64_t count[DMN_BUCKETS + 1]; /* of each bucket alone */
    uint64_t sum_ns;
};

/* The upper bound of each bucket, which is in the bucket. */
extern const uint64_t dmn_histogram_ns[DMN_BUCKETS + 2];
/** dmn_histogram_add() - counts one time. Allocates nothing. */
void dmn_histogram_add(struct dmn_histogram *h, uint64_t ns);

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
    /* converting clients' images: by teams, and by the thread of preparing.c */
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

struct dmn_clients {
    struct dmn_model *model; /* its owner */
    struct dmn_admission admission;
    LIST_HEAD(, dmn_stream) streams; /* all, even without a connection; written by stream.c */
    struct dmn_client_stats stats;
    struct ipc_description *description; /* a reference */
};

/** dmn_clients_new() - for @m, whose m->model is set. Return: owned by the caller; NULL when out of
 * memory. */
struct dmn_clients *dmn_clients_new(struct dmn_model *m);
/** dmn_clients_free() - call when its streams are gone or detached. Takes NULL. Return: NULL. */
struct dmn_clients *dmn_clients_free(struct dmn_clients *w);
/** dmn_clients_count() - counts an answered frame, see dmn_client_stats_answered(). */
void dmn_clients_count(struct dmn_clients *w, const struct dmn_frame_end *e);
