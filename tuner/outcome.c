/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/outcome.h"

double tun_team_ns(const struct tun_problem *p, size_t first, size_t last, size_t ep, size_t width)
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
        ns += cost;
    }
    return ns;
}
