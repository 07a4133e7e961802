/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stats.h"
#include "base/base.h"

void pl_series_merge(struct pl_series *to, const struct pl_series *from)
{
    double n = (double)to->count, k = (double)from->count, all = n + k;
    double delta = from->mean_ns - to->mean_ns;

    if (from->count == 0) {
        return;
    }
    if (to->count == 0) {
        *to = *from;
        return;
    }
    to->mean_ns += delta * (k / all);
    to->m2 += from->m2 + delta * delta * (n * k / all);
    to->ewma_ns = (to->ewma_ns * n + from->ewma_ns * k) / all;
    to->min_ns = base_min(to->min_ns, from->min_ns);
    to->count += from->count;
}

void pl_series_since(const struct pl_series *before, const struct pl_series *now,
                     struct pl_series *ret)
{
    struct pl_series s = *now;

    if (before->count >= now->count) {
        s.count = 0;
        s.m2 = 0;
    } else if (before->count > 0) {
        double n = (double)before->count, all = (double)now->count, k = all - n, delta;

        s.count = now->count - before->count;
        s.mean_ns = (now->mean_ns * all - before->mean_ns * n) / k;
        delta = s.mean_ns - before->mean_ns;
        s.m2 = base_max(now->m2 - before->m2 - delta * delta * (n * k / all), 0.0);
    }
    *ret = s;
}
