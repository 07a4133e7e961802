/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/plans/pace.h"

#include <math.h>

#include "base/base.h"

void dmn_pace_begin(struct dmn_pace *p, uint64_t at_ns, size_t batch)
{
    *p = (struct dmn_pace){.start_ns = at_ns,
                           .last_ns = at_ns,
                           .batch_from_ns = at_ns,
                           .batch_frames = base_max(batch, (size_t)1)};
}

void dmn_pace_add(struct dmn_pace *p, uint64_t at_ns)
{
    p->last_ns = base_max(p->last_ns, at_ns);
    p->count++;
    if (++p->in_batch < p->batch_frames) {
        return;
    }
    if (p->batches == DMN_PACE_BATCHES) {
        for (size_t i = 0; i < DMN_PACE_BATCHES / 2; i++) {
            p->batch_ns[i] = (p->batch_ns[2 * i] + p->batch_ns[2 * i + 1]) / 2;
        }
        p->batches /= 2;
        p->batch_frames *= 2;
        return; /* the batch that was full is now half of a larger one */
    }
    p->batch_ns[p->batches++] = (double)(p->last_ns - p->batch_from_ns) / (double)p->batch_frames;
    p->batch_from_ns = p->last_ns;
    p->in_batch = 0;
}

double dmn_pace_mean_ns(const struct dmn_pace *p)
{
    return p->count ? (double)(p->last_ns - p->start_ns) / (double)p->count : 0;
}

double dmn_student(size_t freedom)
{
    static const double t[] = {INFINITY, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                               2.365,    2.306,  2.262, 2.228, 2.201, 2.179, 2.160,
                               2.145,    2.131,  2.120, 2.110, 2.101, 2.093, 2.086};

    return freedom < base_array_count(t) ? t[freedom] : 1.96 + 2.5 / (double)freedom;
}

double dmn_pace_half_ns(const struct dmn_pace *p)
{
    double mean = 0, sum = 0;

    if (p->batches < 2) {
        return INFINITY;
    }
    for (size_t i = 0; i < p->batches; i++) {
        mean += p->batch_ns[i] / (double)p->batches;
    }
    for (size_t i = 0; i < p->batches; i++) {
        sum += (p->batch_ns[i] - mean) * (p->batch_ns[i] - mean);
    }
    return dmn_student(p->batches - 1) * sqrt(sum / (double)(p->batches - 1) / (double)p->batches);
}
