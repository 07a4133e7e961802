/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/clients.h"

#include <assert.h>

#include "ipc/server/frame_rules.h"

const struct dmn_no_result_row dmn_no_results[DMN_NO_RESULT_COUNT] = {
    [DMN_NO_RESULT_NONE] = {"none", IPC_OK, NULL},
    [DMN_NO_RESULT_INVALID] = {"invalid", IPC_INVALID_ARGUMENT, NULL},
    [DMN_NO_RESULT_CREDIT] = {"no_credit", IPC_RESOURCE_EXHAUSTED, NULL},
    [DMN_NO_RESULT_MEMORY] = {"inline_memory", IPC_RESOURCE_EXHAUSTED, NULL},
    [DMN_NO_RESULT_POOL_LOST] = {"pool_lost", IPC_INVALID_ARGUMENT, IPC_POOL_LOST},
    [DMN_NO_RESULT_FULL] = {"pipeline_full", IPC_RESOURCE_EXHAUSTED, "the pipeline is full"},
    [DMN_NO_RESULT_NEWER] = {"newer_frame", IPC_DROPPED, "a newer frame took its place"},
    [DMN_NO_RESULT_LATE_ARRIVED] = {"deadline_not_feasible", IPC_DEADLINE_EXCEEDED,
                                    "the deadline cannot be met"},
    [DMN_NO_RESULT_LATE_PREPARING] = {"deadline_preparing", IPC_DEADLINE_EXCEEDED,
                                      "the deadline passed while the image was shrunk"},
    [DMN_NO_RESULT_LATE_WAITING] = {"deadline_waiting", IPC_DEADLINE_EXCEEDED,
                                    "the deadline passed while the frame waited"},
    [DMN_NO_RESULT_LATE_COMPUTING] = {"deadline_computing", IPC_DEADLINE_EXCEEDED,
                                      "the deadline passed between two stages"},
    [DMN_NO_RESULT_CANCELLED] = {"cancelled", IPC_CANCELLED, "cancelled"},
    [DMN_NO_RESULT_UNLOADED] = {"model_unloaded", IPC_UNAVAILABLE, "the model was unloaded"},
    [DMN_NO_RESULT_TOO_LARGE] = {"boards_away", IPC_UNAVAILABLE,
                                 "the model is too large for this board, and other boards do not "
                                 "serve it now"},
    [DMN_NO_RESULT_STOPPING] = {"daemon_stopping", IPC_UNAVAILABLE, "the daemon is stopping"},
    [DMN_NO_RESULT_STOPPED] = {"daemon_stopped", IPC_UNAVAILABLE, "the daemon stopped"},
    [DMN_NO_RESULT_NO_THREAD] = {"no_thread", IPC_RESOURCE_EXHAUSTED,
                                 "no thread to shrink images larger than limits.slice_mpixels"},
    [DMN_NO_RESULT_NO_MEMORY] = {"out_of_memory", IPC_RESOURCE_EXHAUSTED,
                                 "out of memory for a large image"},
};

#define DECADE(ns) 10 * (ns), 16 * (ns), 25 * (ns), 40 * (ns), 63 * (ns)

/* Two more than there are, which nothing exceeds: find() looks that far. */
const uint64_t dmn_histogram_ns[DMN_BUCKETS + 2] = {
    DECADE(1000ull),     DECADE(10000ull),     DECADE(100000ull),  DECADE(1000000ull),
    DECADE(10000000ull), DECADE(100000000ull), 10 * 1000000000ull, 16 * 1000000000ull,
    25 * 1000000000ull,  UINT64_MAX,           UINT64_MAX,
};

/* The first bucket whose bound is at least 2^k. */
static const uint8_t first[64] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  2,  3,  5,  6,  8,  9,  11, 12,
    14, 15, 17, 18, 20, 21, 23, 24, 26, 27, 29, 30, 32, 33, 33, 33, 33, 33, 33, 33, 33, 33,
    33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33, 33,
};

/* At most two bounds lie between a power of two and the next. There is no branch, because the times
 * of frames are not predictable to a processor either. */
static size_t find(uint64_t ns)
{
    size_t i = first[63 - __builtin_clzll(ns | 1)];

    return i + (size_t)(dmn_histogram_ns[i] < ns) + (size_t)(dmn_histogram_ns[i + 1] < ns);
}

void dmn_histogram_add(struct dmn_histogram *h, uint64_t ns)
{
    h->count[find(ns)]++;
    h->sum_ns += ns;
}

static void computed(struct dmn_client_stats *s, const struct dmn_frame_end *e)
{
    uint64_t ns = e->done_ns > e->arrival_ns ? e->done_ns - e->arrival_ns : 0;
    double ms = (double)ns / 1e6;

    s->latency_ms[s->latency_count++ % DMN_LATENCIES] = (float)ms;
    s->latency_sum_s += ms / 1e3;
    dmn_histogram_add(&s->latency, ns);
    dmn_histogram_add(&s->queue, e->queue_ns);
    dmn_histogram_add(&s->compute, e->compute_ns);
    if (e->prepare_ns > 0) {
        dmn_histogram_add(&s->preparing, e->prepare_ns);
    }
}

void dmn_client_stats_answered(struct dmn_client_stats *s, const struct dmn_frame_end *e)
{
    s->by_status[e->status]++;
    s->by_policy[e->policy][e->status]++;
    if (e->status == IPC_OK) {
        computed(s, e);
    } else {
        s->by_reason[e->why]++;
    }
}

void dmn_client_stats_served(struct dmn_client_stats *s, uint64_t service_ns)
{
    double *mean = &s->service_ewma_ns;

    *mean += ((double)service_ns - *mean) * (*mean > 0 ? 0.125 : 1.0);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

void dmn_client_stats_latency(const struct dmn_client_stats *s, double ret[4])
{
    size_t n = (size_t)base_min(s->latency_count, (uint64_t)DMN_LATENCIES);
    static const double quantile[3] = {0.50, 0.95, 0.99};
    float sorted[DMN_LATENCIES];

    memset(ret, 0, 4 * sizeof(*ret));
    if (n == 0) {
        return;
    }
    memcpy(sorted, s->latency_ms, n * sizeof(sorted[0]));
    qsort(sorted, n, sizeof(sorted[0]), by_value);
    for (size_t i = 0; i < 3; i++) {
        ret[i] = (double)sorted[(size_t)(quantile[i] * (double)(n - 1) + 0.5)];
    }
    ret[3] = (double)sorted[n - 1];
}

struct dmn_clients *dmn_clients_new(struct dmn_model *m)
{
    struct dmn_clients *w = calloc(1, sizeof(*w));
    struct ipc_description *d = w ? ipc_description_new(m->model->output) : NULL;

    if (!d) {
        free(w);
        return NULL;
    }
    w->model = m;
    ipc_description_hold(&w->description, d);
    dmn_admission_init(&w->admission);
    return w;
}

struct dmn_clients *dmn_clients_free(struct dmn_clients *w)
{
    if (w) {
        assert(LIST_EMPTY(&w->streams));
        dmn_admission_deinit(&w->admission);
        ipc_description_hold(&w->description, NULL);
    }
    free(w);
    return NULL;
}

void dmn_clients_count(struct dmn_clients *w, const struct dmn_frame_end *e)
{
    struct dmn_model_stats *counts = &w->model->stats;

    switch (e->status) {
    case IPC_OK:
        counts->answered++;
        break;
    case IPC_DROPPED:
    case IPC_DEADLINE_EXCEEDED:
    case IPC_CANCELLED:
    case IPC_RESOURCE_EXHAUSTED:
        counts->dropped++;
        break;
    default:
        counts->failed++;
    }
    dmn_client_stats_answered(&w->stats, e);
}
