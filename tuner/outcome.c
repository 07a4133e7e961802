/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/outcome.h"

double tun_frames_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep,
                     size_t width, double frames)
{
    double ns = p->handoff_ns;

    if (first > 0) {
        ns += p->handoff_ns_per_byte * p->units[first].in_bytes;
    }
    for (size_t u = first; u <= last; u++) {
        double cost = tun_cell_at(&p->costs, ep, width, u)->ns;

        if (cost < 0) {
            return -1;
        }
        ns += frames > 1 ? cost * tun_at_once_factor(tun_at_once_at(p, ep, u), frames) : cost;
    }
    return ns;
}

double tun_team_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep, size_t width)
{
    return tun_frames_ns(p, first, last, ep, width, 1);
}

double tun_group_ns(const struct tun_problem *p, size_t first, size_t last,
                    const struct pl_group *group)
{
    return tun_frames_ns(p, first, last, group->ep, group->width, (double)pl_group_batch(group));
}

double tun_latency_of(const struct tun_problem *p, size_t frames, double ns)
{
    return frames > 1 ? p->batch_wait_ns + (double)frames * ns : ns;
}
