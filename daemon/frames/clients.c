/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/clients.h"

#include <assert.h>

#define DECADE(ns) 10 * (ns), 16 * (ns), 25 * (ns), 40 * (ns), 63 * (ns)

/* Two more than there are, which nothing exceeds: find() looks that far. */
static const uint64_t bounds_ns[DMN_BUCKETS + 2] = {
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

uint64_t dmn_histogram_bound_ns(size_t i)
{
    return bounds_ns[i];
}

/* At most two bounds lie between a power of two and the next. There is no branch, because the times
 * of frames are not predictable to a processor either. */
static size_t find(uint64_t ns)
{
    size_t i = first[63 - __builtin_clzll(ns | 1)];

    return i + (size_t)(bounds_ns[i] < ns) + (size_t)(bounds_ns[i + 1] < ns);
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
