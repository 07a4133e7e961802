/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/frame_stats.h"

#include "base/base.h"

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
