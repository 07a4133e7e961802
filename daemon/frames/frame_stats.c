/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/frames/frame_stats.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

void dmn_client_stats_answered(struct dmn_client_stats *s, enum ipc_status status,
                               uint64_t arrival_ns, uint64_t done_ns)
{
    s->by_status[status]++;
    if (status == IPC_OK) {
        double ms = done_ns > arrival_ns ? (double)(done_ns - arrival_ns) / 1e6 : 0;

        s->latency_ms[s->latency_count++ % DMN_LATENCIES] = (float)ms;
        s->latency_sum_s += ms / 1e3;
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
